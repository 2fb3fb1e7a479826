"""Ingress's `ReplayLog`: one at a time, and only what was concluded counts."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeVar

import pytest

from builders import NOW, TENANT
from message_builders import make_letter_replay
from waybill_ingress.app.replays import ReplayLog
from waybill_ingress.core.replays import replayed_letter
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.replays import LetterReplay, Replay, ReplayPosition

T = TypeVar("T")
Places = Sequence[ReplayPosition]
OFFSETS: Final = (17, 3)


class Bench(Protocol):
    """A log of replays, and pipelines of which nothing was replayed."""

    uids: tuple[str, str]

    @property
    def log(self) -> ReplayLog: ...

    @property
    def other_log(self) -> ReplayLog:
        """Of another process."""

    def run(self, work: Callable[[], Awaitable[T]]) -> T: ...

    def written(self) -> list[tuple[ReplayPosition, LetterReplay]]:
        """What a reader of committed records finds of the letters of these pipelines."""


class ReplayLogContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_nothing_was_told_of_a_pipeline_of_which_nothing_was_sent(self, bench: Bench) -> None:
        assert bench.run(lambda: read_answers(bench.log, bench.uids[0])) == []

    def test_what_was_concluded_stands_there_and_is_told_in_its_order(self, bench: Bench) -> None:
        uid, answers = bench.uids[0], []
        for number in range(3):
            answer, places = bench.run(lambda n=number: send(bench.log, uid, f"t{n}"))  # type: ignore[misc]
            answers.append(answer)
            for asked, position in zip(letters(uid), places, strict=True):
                assert (position, asked) in bench.written()
        assert len(bench.written()) == 3 * len(OFFSETS)
        assert bench.run(lambda: read_answers(bench.other_log, uid)) == answers

    def test_an_answer_needs_no_records(self, bench: Bench) -> None:
        uid = bench.uids[0]
        answer, places = bench.run(lambda: send(bench.log, uid, "t", offsets=()))
        assert (list(places), bench.written()) == ([], [])
        assert bench.run(lambda: read_answers(bench.log, uid)) == [answer]

    def test_what_was_not_concluded_does_not_count(self, bench: Bench) -> None:
        uid = bench.uids[0]

        async def give_up() -> None:
            async with bench.log.transaction(TENANT, uid) as transaction:
                await transaction.read()
                await transaction.send(letters(uid))

        bench.run(give_up)
        assert bench.run(lambda: read_answers(bench.log, uid)) == []
        assert bench.written() == []

    @pytest.mark.parametrize("sent", [False, True], ids=["before it sent", "after it sent"])
    def test_who_begins_shuts_out_who_has_begun(self, bench: Bench, sent: bool) -> None:
        uid = bench.uids[0]

        async def two() -> Replay:
            async with bench.log.transaction(TENANT, uid) as transaction:
                assert await transaction.read() == []
                places = await transaction.send(letters(uid)) if sent else ()
                answer, _ = await send(bench.other_log, uid, "second")
                late = answer_of(uid, "first", OFFSETS, places) if sent else None
                with pytest.raises(Retryable):
                    await (
                        transaction.send(letters(uid))
                        if late is None
                        else transaction.conclude(late)
                    )
            return answer

        answer = bench.run(two)
        assert bench.run(lambda: read_answers(bench.log, uid)) == [answer]
        assert len(bench.written()) == len(OFFSETS)

    def test_pipelines_do_not_shut_out_each_other(self, bench: Bench) -> None:
        one, other = bench.uids

        async def both() -> tuple[Replay, Replay]:
            async with bench.log.transaction(TENANT, one) as transaction:
                await transaction.read()
                second, _ = await send(bench.other_log, other, "other")
                places = await transaction.send(letters(one))
                first = answer_of(one, "one", OFFSETS, places)
                await transaction.conclude(first)
            return first, second

        first, second = bench.run(both)
        assert bench.run(lambda: read_answers(bench.log, one)) == [first]
        assert bench.run(lambda: read_answers(bench.log, other)) == [second]


def letters(uid: str, offsets: Sequence[int] = OFFSETS) -> list[LetterReplay]:
    return [replace(make_letter_replay(offset), pipeline_uid=uid) for offset in offsets]


def answer_of(uid: str, token: str, offsets: Sequence[int], places: Places) -> Replay:
    asked = zip(letters(uid, offsets), places, strict=True)
    sent = [replayed_letter(each, position, generation=1) for each, position in asked]
    return Replay(
        tenant=TENANT, pipeline_uid=uid, at=NOW, request_id="r", token=token, letters=tuple(sent)
    )


async def send(
    log: ReplayLog, uid: str, token: str, offsets: Sequence[int] = OFFSETS
) -> tuple[Replay, Places]:
    async with log.transaction(TENANT, uid) as transaction:
        places = await transaction.send(letters(uid, offsets))
        answer = answer_of(uid, token, offsets, places)
        await transaction.conclude(answer)
    return answer, places


async def read_answers(log: ReplayLog, uid: str) -> list[Replay]:
    async with log.transaction(TENANT, uid) as transaction:
        return list(await transaction.read())
