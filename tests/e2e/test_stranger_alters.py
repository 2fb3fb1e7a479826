"""A stranger alters the table of a pipeline with `schemaEvolution` while it is written."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, StringType

from e2e.kept_table import Writer, assert_whole, once, readers, rows_by_key, table_name
from waybill_local.stack import StackState

BATCHES = 30
KEYS = 10
PAUSE_S = 0.3  # of the stranger: who never stops leaves room for nobody
TRIES = 50
WIDER = "SELECT key, value, value * 2 AS twice, CAST(value AS STRING) AS said FROM orders"


@pytest.fixture
def writer(stack: StackState, catalog: SqlCatalog) -> Iterator[Writer]:
    made = Writer(stack, catalog, table_name())
    yield made
    made.end()


def add(table: Table, number: int) -> None:
    with table.update_schema() as update:
        update.add_column(f"note_{number}", StringType())


def remove(table: Table, number: int) -> None:
    """One of its own."""
    notes = [each.name for each in table.schema().fields if each.name.startswith("note_")]
    with table.update_schema() as update:
        for name in notes[:1]:
            update.delete_column(name)


def add_what_the_pipeline_adds(table: Table, number: int) -> None:
    with table.update_schema() as update:
        update.add_column("twice", LongType())


def partition(table: Table, number: int) -> None:
    with table.update_spec() as update:
        update.add_field("key", BucketTransform(2 + number), f"shard_{number}")


def unite_partitions(table: Table, number: int) -> None:
    with table.update_spec() as update:
        for field in table.spec().fields:
            update.remove_field(field.name)


def sort(table: Table, number: int) -> None:
    with table.update_sort_order() as order:
        order.asc("key", IdentityTransform())


def describe(table: Table, number: int) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"stranger": str(number)})


Deed = Callable[[Table, int], None]
DEEDS: tuple[Deed, ...] = (
    add, remove, add_what_the_pipeline_adds, partition, unite_partitions, sort, describe,
)  # fmt: skip


def carry_out(deed: Deed, catalog: SqlCatalog, name: str, number: int) -> None:
    """Again, where the pipeline came first."""
    for _ in range(TRIES):
        with suppress(CommitFailedException):
            deed(catalog.load_table(name), number)
            return
    raise AssertionError(f"{deed.__name__}: the pipeline came first {TRIES} times")


@contextmanager
def altering(catalog: SqlCatalog, name: str) -> Iterator[list[str]]:
    """What a stranger has done to the table so far; first each deed in turn."""
    done, end = list[str](), threading.Event()

    def alter() -> None:
        for number in count():
            if end.wait(PAUSE_S):
                return
            deed = DEEDS[number] if number < len(DEEDS) else random.choice(DEEDS)
            with suppress(ValueError):  # it is so already
                carry_out(deed, catalog, name, number)
                done.append(deed.__name__)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(alter)
        try:
            yield done
        finally:
            end.set()
        running.result()


@pytest.mark.parametrize("mode", ["mode: append", "mode: upsert, keys: [key]"])
def test_rows_are_there_once_whatever_a_stranger_makes_of_the_table(
    stack: StackState, catalog: SqlCatalog, writer: Writer, mode: str
) -> None:
    evolving = f"{mode}, schemaEvolution: add"
    writer.apply(evolving)
    writer.send(range(KEYS))
    dice = random.Random(writer.name)
    with readers(catalog, writer.table, may_change=True), altering(catalog, writer.table) as done:
        for batch in range(1, BATCHES):
            first = dice.randrange(batch) * KEYS if "upsert" in mode else batch * KEYS
            writer.send(range(first, first + KEYS))
            if batch == BATCHES // 3:
                writer.apply(evolving, WIDER)

    table = catalog.load_table(writer.table)
    assert rows_by_key(table) == once(writer.sent)
    assert {"twice", "said"} <= {each.name for each in table.schema().fields}
    assert {"add", "partition", "sort", "describe"} <= {*done}
    assert_whole(table)
    assert writer.client.pipeline(writer.name).phase == "Running"
