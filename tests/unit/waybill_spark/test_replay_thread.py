"""Letters are replayed while a run goes on: by each stage its own, in a thread of its own."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from unit.waybill_spark.letters import AT, REPLAYS, REPLAYS_ID, letter_replay
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.vectors import TopicPartition, Vector
from waybill_spark.driver import replays
from waybill_spark.driver.replays import ReplayThread
from waybill_spark.tracking.replaying import Letter, Replays
from waybill_spark.tracking.stopping import StageClosed

WAIT_S = 10.0


def found(*letters: tuple[int, str]) -> Replays:
    """Letters by the offsets of their messages and the keys of their stages."""
    asked = letter_replay(1, [])
    return Replays(
        topic=REPLAYS,
        topic_id=REPLAYS_ID,
        partition=AT[1],
        letters=[Letter(offset=at, asked=replace(asked, stage=key)) for at, key in letters],
        end=max(at for at, _ in letters) + 1,
    )


@dataclass
class Script:
    """What `read` returns or raises, one after the other; then nothing is new."""

    steps: list[Replays | Exception | None]
    gone: Sequence[TopicPartition] = ()
    begun: list[list[Vector]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def start(self, replayed: Sequence[Vector]) -> Replays:
        self.begun.append([*replayed])
        return replace(found((0, "nobody")), letters=[], end=0, gone=self.gone)

    def read(self) -> Replays | None:
        if not self.steps:
            self.over.set()
            return None
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


@dataclass
class Stage:
    key: str
    done: Vector = field(default_factory=dict)
    fails: Exception | None = None
    begins: list[Sequence[TopicPartition]] = field(default_factory=list)
    """The topics that were gone when it began."""
    got: list[tuple[list[int], int]] = field(default_factory=list)

    def replays_done(self) -> Sequence[Vector]:
        return [self.done]

    def replay(self, replays: Replays) -> None:
        if not replays.end:
            self.begins.append(replays.gone)
            return
        self.got.append(([each.offset for each in replays.letters], replays.end))
        if self.fails is not None:
            raise self.fails


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "ROUND_S", 0.001)


def run(script: Script, stage: Stage) -> ReplayThread:
    thread = ReplayThread(stage, script)
    thread.start()
    assert script.over.wait(WAIT_S)
    thread.stop()
    thread.join(WAIT_S)
    return thread


def test_a_stage_gets_its_own_letters_and_how_far_all_were_read() -> None:
    stage = Stage("first@1")
    run(Script([None, found((3, "second@1"), (5, "first@1")), found((9, "gone@1"))]), stage)
    assert stage.got == [([5], 6), ([], 10)]


def test_it_begins_where_the_sinks_are() -> None:
    script = Script([])
    run(script, Stage("first@1", {AT: 4}))
    assert script.begun == [[{AT: 4}]]


def test_before_all_letters_it_gets_what_is_gone() -> None:
    stage = Stage("first@1")
    run(Script([Retryable("another topic"), found((3, "first@1"))], gone=[AT]), stage)
    assert stage.begins == [[AT], [AT]]
    assert stage.got == [([3], 4)]


@pytest.mark.parametrize("error", [Retryable("a broker is away"), ValueError("unforeseen")])
def test_what_cannot_be_read_now_is_read_from_there_again(error: Exception) -> None:
    stage = Stage("first@1")
    script = Script([error, found((3, "first@1"))])
    run(script, stage)
    assert len(script.begun) == 2
    assert stage.got == [([3], 4)]


@pytest.mark.parametrize("error", [StageClosed(), Retryable("the sink is away"), OSError()])
def test_after_a_replay_that_fails_nothing_is_replayed(error: Exception) -> None:
    """The stage is stopped or closed. When it starts again, it begins with what is not done."""
    stage = Stage("first@1", fails=error)
    thread = ReplayThread(stage, Script([found((3, "first@1")), found((4, "first@1"))]))
    thread.start()
    thread.join(WAIT_S)
    assert stage.got == [([3], 4)]
    assert not thread.has_caught_up()


def test_it_has_caught_up_when_nothing_more_is_there() -> None:
    script, stage = Script([found((3, "first@1")), found((4, "first@1"))]), Stage("first@1")
    thread = run(script, stage)
    assert thread.has_caught_up()
    assert len(stage.got) == 2
