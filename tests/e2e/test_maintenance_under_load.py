"""Tables are kept in order while others write and read them: no row is missing, none is twice."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from driver_clocks import turn
from e2e.every_sink import WAIT_S
from e2e.kept_table import Writer, assert_whole, counted, once, readers, rows_by_key, table_name
from e2e.waiting import eventually
from waybill_local.stack import StackState
from waybill_shared.contract.words import EventType

ROUNDS = 3
BATCHES = 6  # of a round: more small files than stay
KEYS = 20  # of a batch
AGAIN = 3  # of them, which come again with the next one
DAYS_2_S = 2 * 24 * 3_600
TASKS = (
    "compact: {every: 1 minute}, rewriteManifests: {every: 1 minute},"
    " expireSnapshots: {every: 1 minute, olderThan: 1 hour},"
    " removeOrphans: {every: 1 minute, olderThan: 1 day}"
)


@pytest.fixture
def writers(stack: StackState, catalog: SqlCatalog) -> Iterator[list[Writer]]:
    """Of one table."""
    name = table_name()
    made = [Writer(stack, catalog, name, number) for number in range(2)]
    yield made
    for writer in made:
        writer.end()


def maintain(writer: Writer) -> None:
    taken = writer.client.maintain(writer.name, "lake")
    done = writer.client.operation(taken.id, wait_s=WAIT_S) if taken.pending else taken
    assert done.state == "done", done.errors


@pytest.mark.parametrize("mode", ["mode: append", "mode: upsert, keys: [key]"])
def test_a_snapshot_is_read_as_it_was_while_the_table_is_compacted(
    stack: StackState, catalog: SqlCatalog, writers: list[Writer], mode: str
) -> None:
    """Who has planned a read before reads what the token of the last batch then said."""
    writer, _ = writers
    writer.apply(f"{mode}, maintenance: {{{TASKS.replace('1 minute', '300 days')}}}")
    is_upsert = "upsert" in mode

    def send_some(number: int) -> str:
        token = ""
        for batch in range(BATCHES):
            first = (number * BATCHES + batch) * KEYS
            again = AGAIN if is_upsert and first else 0
            token = writer.send(range(first - again, first + KEYS))
        return token

    token = send_some(0)
    with readers(catalog, writer.table, may_change=is_upsert), ThreadPoolExecutor(2) as pool:
        for number in range(1, ROUNDS):
            snapshot, _ = writer.snapshot_of(token)
            wanted = once(writer.sent)
            scan = catalog.load_table(writer.table).scan(snapshot_id=snapshot)
            kept, sent = pool.submit(maintain, writer), pool.submit(send_some, number)
            kept.result()
            assert counted(scan) == wanted
            assert rows_by_key(catalog.load_table(writer.table), snapshot) == wanted
            token = sent.result()
    assert rows_by_key(catalog.load_table(writer.table)) == once(writer.sent)
    assert "replace" in operations(catalog, writer.table)
    assert_whole(catalog.load_table(writer.table))


def operations(catalog: SqlCatalog, name: str) -> set[str]:
    snapshots = catalog.load_table(name).snapshots()
    return {each.summary.operation.value for each in snapshots if each.summary is not None}


def test_drivers_a_day_ahead_and_behind_delete_nothing_that_a_snapshot_names(
    stack: StackState, catalog: SqlCatalog, clocks: Path, writers: list[Writer]
) -> None:
    """Both write the table, and are to keep it in order; a driver with the true time then does."""
    with ThreadPoolExecutor(2) as pool:
        [*pool.map(lambda writer: writer.apply("mode: append"), writers)]
        for writer, ahead_h in zip(writers, (24, -24), strict=True):
            turn(clocks, writer.uid, ahead_h=ahead_h)
        [*pool.map(lambda each: each.apply(f"mode: append, maintenance: {{{TASKS}}}"), writers)]
        for writer in writers:
            writer.send(range(1))
        data = Path(catalog.load_table(writers[0].table).location().removeprefix("file://"), "data")
        fresh, old = data / "fresh.parquet", data / "old.parquet"
        for path in (fresh, old):
            path.write_bytes(b"nobody knows it")
        os.utime(old, (old.stat().st_mtime - DAYS_2_S,) * 2)

        with readers(catalog, writers[0].table):
            tokens = [*pool.map(send_batches, writers)]
            for writer, way in zip(writers, ("ahead of", "behind"), strict=True):
                eventually(partial(refuses_all, stack, writer), within_s=WAIT_S)
                assert all(f"24 hours {way}" in each for each in refusals(stack, writer))
            assert fresh.exists()
            assert old.exists()
            maintain(writers[0])

    assert fresh.exists()
    assert not old.exists()
    table = catalog.load_table(writers[0].table)
    assert_whole(table)
    assert rows_by_key(table) == once(writers[0].sent | writers[1].sent)
    for writer, token in zip(writers, tokens, strict=True):
        snapshot, detail = writer.snapshot_of(token)
        assert detail is None
        assert table.snapshot_by_id(snapshot) is not None


def send_batches(writer: Writer) -> str:
    token = ""
    for batch in range(1, 2 * BATCHES):
        token = writer.send(range(batch * KEYS, (batch + 1) * KEYS))
    return token


def refuses_all(stack: StackState, writer: Writer) -> bool:
    return len(refusals(stack, writer)) == len(TASKS.split("}, "))


def refusals(stack: StackState, writer: Writer) -> list[str]:
    """Why a driver could not keep the table in order: of each task once."""
    asked = urlencode({"pipeline": writer.name, "type": EventType.TABLE_NOT_MAINTAINED})
    with urlopen(f"{stack.url}/v1/events?{asked}", timeout=WAIT_S) as answer:
        events = json.load(answer)["items"]
    return [*{each["data"]["task"]: each["data"]["problem"] for each in events}.values()]
