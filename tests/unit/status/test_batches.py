"""Who reads the batches of a stage gets each once, in each sink, whatever was reported again."""

import random
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from unit.status.committing import STAGE, CommitLog
from unit.status.coroutines import in_a_loop
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import record
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.words import HistoryGap
from waybill_shared.http.app import create_app
from waybill_shared.process.health import Health
from waybill_status.adapters.http.batches import batches_router
from waybill_status.app.pipelines import batches as module
from waybill_status.app.pipelines.batches import Batches
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.core.pipelines.batches import BatchesPage, StageBatch, group

PLACE = f"/v1/pipelines/orders/stages/{STAGE}/batches"


@pytest.fixture
def log() -> CommitLog:
    return CommitLog()


@pytest.fixture
def batches(log: CommitLog) -> Batches:
    owners = FakeOwners(record())
    return Batches(Pipelines(owners.directory, owners, FakeStore()), log)


async def read(
    batches: Batches, *, limit: int = 9, after: str = "", cursor: str = ""
) -> BatchesPage:
    return await batches.page(ANYONE, "orders", STAGE, limit=limit, after=after, cursor=cursor)


async def walk(batches: Batches, limit: Callable[[], int], after: str = "") -> list[BatchesPage]:
    pages = [await read(batches, limit=limit(), after=after)]
    while (following := pages[-1].next) is not None:
        assert len(pages) < 10_000, "the pages never end"
        pages.append(await read(batches, limit=limit(), cursor=str(following)))
    return pages


def numbers(page: BatchesPage) -> list[tuple[int, list[str]]]:
    return [(each.batch, [sink.name for sink in each.sinks]) for each in page.items]


@in_a_loop
async def test_a_batch_has_its_range_times_rows_and_versions(
    log: CommitLog, batches: Batches
) -> None:
    log.next_batch("lake", "copy")
    (batch,) = (await read(batches)).items
    assert (batch.batch, batch.started_at, batch.records, batch.ranges_count) == (0, 0, 10, 1)
    assert [(each.start, each.end) for each in batch.ranges] == [(0, 10)]
    assert [(sink.name, sink.rows, sink.committed_at) for sink in batch.sinks] == [
        ("lake", 1, 100),
        ("copy", 1, 100),
    ]
    assert batch.sinks[1].version == {"snapshot": "copy0"}


@in_a_loop
async def test_what_is_reported_again_is_no_other_batch(log: CommitLog, batches: Batches) -> None:
    log.next_batch("lake", "copy")
    for sink in ("lake", "copy"):
        log.report(sink, again=True)  # the next driver
        log.move(sink)
        log.report(sink, again=True)
    log.next_batch("lake", "copy")
    both = ["lake", "copy"]
    assert numbers(await read(batches)) == [(0, both), (1, both)]


@in_a_loop
async def test_a_batch_that_only_the_next_driver_reported_has_no_end(
    log: CommitLog, batches: Batches
) -> None:
    log.next_batch()
    log.batch += 1
    log.report(lost=True)
    log.report(again=True)
    page = await read(batches)
    assert [(each.batch, each.sinks[0].committed_at) for each in page.items] == [
        (0, 100),
        (1, None),
    ]


@in_a_loop
async def test_a_sink_that_lagged_has_its_batch_later(log: CommitLog, batches: Batches) -> None:
    log.next_batch("lake")
    log.next_batch("lake")
    log.report("copy")
    assert numbers(await read(batches)) == [(0, ["lake"]), (1, ["lake", "copy"])]


def a_log(seed: int) -> CommitLog:
    """Batches in two sinks, drivers that start again, and facts of others in between."""
    dice, log = random.Random(seed), CommitLog()
    log.next_batch("lake", "copy")
    for _ in range(60):
        what = dice.choice(["batch", "batch", "batch", "restart", "lost"])
        others = dice.choice([0, 0, 1, 9])
        if what == "batch":
            log.next_batch("lake", "copy", others=others)
        elif what == "lost":
            log.batch += 1
            log.report("lake", others=others)
            log.report("copy", lost=True)
            log.report("copy", again=True)
        else:
            for sink in ("lake", "copy"):
                log.report(sink, again=True, others=others)
                log.move(sink)
    return log


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OFFSETS_MAX", 160)
    monkeypatch.setattr(module, "STEP_MIN", 20)
    monkeypatch.setattr(module, "REPORTS_MAX", 120)
    monkeypatch.setattr(module, "OVERLAP", 100)


@pytest.mark.parametrize("seed", range(12))
@in_a_loop
async def test_pages_have_each_batch_once(seed: int, small: None) -> None:
    log, dice, owners = a_log(seed), random.Random(seed), FakeOwners(record())
    batches = Batches(Pipelines(owners.directory, owners, FakeStore()), log)
    whole = [each.describe() for each in group(log.reports)[0]]
    for after in ("", "0"):
        pages = await walk(batches, lambda: dice.choice([1, 2, 5]), after)
        found: list[StageBatch] = []
        for page in pages:
            found = [*found, *page.items] if after else [*page.items, *found]
        assert found == whole, after or "back"
    known = dice.choice(whole)
    pages = await walk(batches, lambda: dice.choice([1, 2, 5]), known.id)
    assert [each for page in pages for each in page.items] == whole[whole.index(known) + 1 :]
    assert max(log.parts) <= 160


@pytest.mark.parametrize("after", ["", "0"])
@in_a_loop
async def test_a_page_that_ends_within_a_batch_leaves_it_to_the_next(
    after: str, log: CommitLog, batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OFFSETS_MAX", 5)
    monkeypatch.setattr(module, "OVERLAP", 1)
    for _ in range(10):
        log.next_batch("lake", "copy")
    pages = await walk(batches, lambda: 9, after)
    assert len(pages) > 2
    found = [each for page in pages for each in numbers(page)]
    assert sorted(found) == [(number, ["lake", "copy"]) for number in range(10)]


@in_a_loop
async def test_what_retention_has_deleted_is_a_gap(log: CommitLog, batches: Batches) -> None:
    for _ in range(5):
        log.next_batch()
    old = (await read(batches)).items[0].id
    log.start, log.reports = 3, log.reports[3:]
    page = await read(batches, after=old)
    assert (numbers(page), page.gap) == ([(3, ["lake"]), (4, ["lake"])], HistoryGap.EXPIRED)
    assert (await read(batches, cursor=f"before.{old}")).gap == HistoryGap.EXPIRED
    assert (await read(batches)).gap is None


@in_a_loop
async def test_an_id_of_another_topic_is_not_misread(batches: Batches, log: CommitLog) -> None:
    log.next_batch()
    page = await read(batches, after="commits-0.1.7")
    assert (numbers(page), page.gap) == ([(0, ["lake"])], HistoryGap.TOPIC_RECREATED)
    page = await read(batches, cursor="before.commits-1.2.7")
    assert (page.items, page.gap) == ((), HistoryGap.OTHER_PIPELINE)


@in_a_loop
async def test_without_kafka_there_is_no_answer(
    batches: Batches, log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as slow:
        slow.setattr(module, "PAGE_S", 0.0)
        with pytest.raises(Retryable, match="within 0 s"):
            await read(batches)
    log.away = True
    with pytest.raises(Retryable, match="away"):
        await read(batches)


def test_batches_over_http(batches: Batches, log: CommitLog) -> None:
    for _ in range(3):
        log.next_batch()
    with local_client(create_app("status", [batches_router(batches)], Health())) as client:
        _check_pages(client)
        answer = client.get(PLACE.replace(STAGE, "enrih"))
        assert (answer.status_code, answer.json()["known"]) == (404, ["enrich", "load"])
        assert answer.json()["hint"].startswith("did you mean 'enrich'?")
        assert client.get(PLACE.replace("orders", "order")).status_code == 404
        for asked in ("limit=0", "limit=501", "after=7", "cursor=7"):
            assert client.get(f"{PLACE}?{asked}").status_code == 422
        log.away = True
        assert client.get(PLACE).status_code == 503


def _check_pages(client: TestClient) -> None:
    page = client.get(PLACE, params={"limit": 2}).json()
    assert [each["batch"] for each in page["items"]] == [1, 2]
    assert page["items"][0]["sinks"] == [
        {
            "name": "lake",
            "rows": 1,
            "committed_at": "1970-01-01T00:00:01.100Z",
            "version": {"snapshot": "lake1"},
        }
    ]
    older = client.get(PLACE, params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert ([each["batch"] for each in older["items"]], older["next_cursor"]) == ([0], None)
    later = client.get(PLACE, params={"after": older["items"][0]["id"]}).json()
    assert later["items"] == page["items"]
