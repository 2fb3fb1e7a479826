"""What is read of dead letters, and when; and who hears of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient

from builders import with_batch
from unit.status.coroutines import WAIT_S, in_a_loop, inside
from unit.status.fakes import FakeStore
from unit.status.slots import (
    COPY,
    ENRICH,
    KEY,
    LOAD,
    burying,
    dead,
    progress,
    reading,
    sealed,
    slot,
    span,
    token,
)
from unit.status.test_hub import Reader, quiet
from unit.status.worlds import DONE, SHORT, World, world
from waybill_shared.contract.slots import DeadEntry, Progress, Slot
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.words import OutcomeKind
from waybill_status.app.outcomes.answering import NEWEST
from waybill_status.app.ports import DeadReading
from waybill_status.core.outcomes.dead_letters import DeadRun, Dropped
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.views import PipelineKey

ASKED = token(span(0, 5))


async def now(w: World, asked: Token = ASKED) -> Outcome:
    (outcome,) = await w.tokens.now([asked])
    assert isinstance(outcome, Outcome)
    return outcome


@inside(world)
async def test_what_died_is_told_with_one_question_more(w: World) -> None:
    w.store.put(DONE, dead(3), dead(7), version=1)
    outcome = await now(w)
    assert (outcome.outcome, outcome.dead_count) == (OutcomeKind.DEAD_LETTERED, 1)
    assert (w.store.reads, w.store.letter_reads) == (1, 1)


@inside(world)
async def test_where_nothing_died_nothing_more_is_asked(w: World) -> None:
    w.store.put(DONE, version=1)
    assert (await now(w)).outcome == OutcomeKind.COMPLETE
    w.store.put(DONE, dead(3, partition=1), version=2)
    assert (await now(w)).outcome == OutcomeKind.COMPLETE
    assert w.store.letter_reads == 0
    asked = w.store.history_reads
    w.store.put(DONE, version=3)
    await now(w)
    assert w.store.history_reads == asked + 2, "nothing was dropped, either"


@inside(world)
async def test_who_waits_hears_of_what_dies(w: World) -> None:
    w.store.put(SHORT, version=1)
    reader = Reader(w.tokens, ASKED)
    await quiet()
    w.store.put(SHORT, dead(2), version=2)
    await quiet()
    w.store.put(DONE, dead(2), dead(4), version=3)
    await reader.task
    told = [(change.outcome.outcome, change.outcome.dead_count) for change in reader.told]
    assert told == [
        (OutcomeKind.IN_PROGRESS, 0),
        (OutcomeKind.IN_PROGRESS, 1),
        (OutcomeKind.DEAD_LETTERED, 2),
    ]


@inside(world)
async def test_waiting_asks_for_no_dead_letters_where_there_are_none(w: World) -> None:
    w.store.put(SHORT, version=1)
    readers = [Reader(w.tokens, token(span(0, 5))) for _ in range(20)]
    await quiet()
    w.store.put(DONE, version=2)
    await asyncio.gather(*(reader.task for reader in readers))
    assert w.store.letter_reads == 0


@inside(world)
async def test_fewer_entries_than_were_counted_are_no_answer(w: World) -> None:
    """Redis has lost them; who waits is told once they are there again."""
    w.store.put(DONE, dead(3), version=1)
    w.store.letters[KEY] = ()
    outcome = await now(w)
    assert (outcome.outcome, outcome.reason) == (OutcomeKind.UNKNOWN, "slot_missing")
    waiting = asyncio.create_task(w.tokens.wait(ASKED, WAIT_S))
    await quiet()
    w.store.letters[KEY] = (dead(3),)
    assert (await waiting).outcome == OutcomeKind.DEAD_LETTERED


@inside(world)
async def test_more_entries_than_were_counted_are_newer_ones(w: World) -> None:
    w.store.put(DONE, dead(3), version=1)
    w.store.letters[KEY] = (dead(3), dead(9))
    assert (await now(w)).dead_count == 1


@dataclass
class Moving(FakeStore):
    """While it is asked for entries, the tracker makes few of many, and writes the slot."""

    content: Slot = field(default_factory=slot)
    few: tuple[DeadEntry, ...] = ()
    moves: int = 1

    async def dead(self, pipeline: PipelineKey, runs: Sequence[DeadRun], count: int) -> DeadReading:
        if self.moves:
            self.moves -= 1
            self.letters[KEY] = self.few
            version = self.readings[KEY].stamp.version + 1
            self.readings[KEY] = reading(burying(self.content, *self.few), version=version)
        return await super().dead(pipeline, runs, count)


@pytest.mark.parametrize(
    ("moves", "expected"), [(1, OutcomeKind.DEAD_LETTERED), (99, OutcomeKind.UNKNOWN)]
)
@in_a_loop
async def test_entries_are_read_as_they_are_counted(moves: int, expected: OutcomeKind) -> None:
    """One that is longer than was known ends farther away than was looked."""
    few = (dead(0, 90, up_to=2), dead(95))
    async with world(store=Moving(content=DONE, few=few, moves=moves)) as w:
        w.store.put(DONE, dead(3), dead(4), version=1)
        assert (await now(w)).outcome == expected


@inside(world)
async def test_without_redis_what_died_is_not_known(w: World) -> None:
    w.store.put(DONE, dead(3), version=1)
    w.store.letters_away = True
    outcome = await now(w)
    assert (outcome.outcome, outcome.reason) == (OutcomeKind.UNKNOWN, "redis_away")


def dropping(first: int, last: int, **counts: int) -> list[Progress]:
    """Batch n has brought five records, the fifth from 5n on, and dropped one more by each rule."""
    names = {rule.replace("_", ".", 1): count for rule, count in counts.items()}
    return [
        with_batch(
            progress(number, 5 * (number + 1), before=5 * number, sink=COPY),
            dropped={rule: count * (number + 1) for rule, count in names.items()},
        )
        for number in range(first, last + 1)
    ]


def dropped(
    asked: Token, batches: list[Progress], *, lake: list[Progress] | None = None
) -> tuple[Dropped, ...]:
    async def ask() -> tuple[Dropped, ...]:
        async with world() as w:
            end = 5 * (batches[-1].batch.batch_id + 1)
            w.store.put(slot(enriched=(end,), copy=(end,), lake=(end,)), version=1)
            w.store.histories[KEY, ENRICH] = []
            w.store.histories[KEY, COPY] = batches
            if lake is not None:
                w.store.histories[KEY, LOAD] = lake
            return (await now(w, asked)).dropped

    return asyncio.run(ask())


@pytest.mark.parametrize("last", [3, NEWEST + 10])
def test_what_was_dropped_is_told_over_the_batches_that_brought_the_token(last: int) -> None:
    batches = dropping(0, last, orders_rule=2, orders_malformed=1, customers_rule=7)
    assert dropped(token(span(6, 9)), batches) == (
        Dropped(rule="orders.malformed", stage="enrich", up_to=1),
        Dropped(rule="orders.rule", stage="enrich", up_to=2),
    )
    assert [each.up_to for each in dropped(token(span(4, 11)), batches)] == [3, 6]
    assert [each.up_to for each in dropped(token(span(0, 1)), batches)] == [1, 1], "of one record"


def test_what_was_dropped_by_forgotten_batches_is_left_out() -> None:
    batches = dropping(2, 5, orders_rule=1)
    assert dropped(token(span(10, 12)), batches) == ()
    assert [each.up_to for each in dropped(token(span(15, 20)), batches)] == [1]


def test_what_no_batch_of_the_token_dropped_is_not_told() -> None:
    quiet_one = with_batch(dropping(2, 2)[0], dropped={"orders.rule": 2})
    batches = [*dropping(0, 1, orders_rule=1), quiet_one]
    assert dropped(token(span(10, 12)), batches) == ()


def test_of_a_stage_behind_another_one_nothing_is_told() -> None:
    lake = [with_batch(progress(0, 5), dropped={"enriched.rule": 3})]
    assert dropped(token(span(0, 5)), dropping(0, 0), lake=lake) == ()


def test_an_answer_to_many_tokens_has_dead_letters_up_to_a_limit(
    client: TestClient, store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_status.adapters.http.tokens.DEAD_MAX", 3)
    store.put(DONE, dead(1), dead(3), version=1)
    asked = [sealed(token(span(0, 5), issued_at=ASKED.issued_at + n)) for n in range(3)]
    outcomes = client.post("/v1/tokens/query", json={"tokens": asked}).json()["outcomes"]
    assert [len(each["dead"]) for each in outcomes] == [2, 1, 0]
    assert [each.get("dead_truncated") for each in outcomes] == [None, True, True]
    assert {each["dead_count"] for each in outcomes} == {2}


def test_dead_letters_read_as_the_contract_has_them(client: TestClient, store: FakeStore) -> None:
    entries = dead(3), dead(0, 5, stage="load@1", sink=LOAD, up_to=2)
    store.put(DONE, *entries, version=1)
    body: dict[str, Any] = client.get(f"/v1/tokens/{sealed(ASKED)}").json()
    common = {"topic": "orders.in", "partition": 0, "rule": None, "reason": "malformed"}
    lies = {"topic": "orders.in.dlq", "partition": 0, "offset": 3}
    assert body["outcome"] == "dead_lettered"
    assert body["dead"] == [
        {**common, "start": 0, "end": 5, "stage": "load", "sink": "lake", "up_to": 2,
         "message": "no number", "exact": False},
        {**common, "offset": 3, "stage": "enrich", "sink": None, "message": "no number",
         "dead_letter": lies, "id": "orders.in.dlq:0:3:3", "exact": True, "replayed_as": None},
    ]  # fmt: skip
    assert (body["dead_count"], body["dropped"]) == (3, [])
