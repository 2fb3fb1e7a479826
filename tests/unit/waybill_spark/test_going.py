"""A stage that fails by itself is stopped, the others go on, and an order starts it again."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import ContractError, Problem, Retryable, UserError
from waybill_shared.contract.events import InputDefinition, StageDefinition
from waybill_shared.contract.words import LossReason, StopReason
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.failures import StageFailed
from waybill_spark.driver.going import RunStages
from waybill_spark.driver.pausing import Pausing
from waybill_spark.driver.run_control import PauseState, RunControl, StageStarts
from waybill_spark.driver.stages import open_stages, put_dead_letters, start_stages
from waybill_spark.driver.starting import StageStarting
from waybill_spark.tracking.sink import SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

OWN = StageStopped(StopReason.DEAD_LETTER_BUDGET, "too many", "start it")
LOST = StageStopped(LossReason.TOPIC_DELETED, "it is gone", "restart it")


@dataclass
class Stage:
    name: str
    log: list[str]
    opens: ContractError | None = None
    losses: StageStopped | None = None
    starts: ContractError | None = None
    stops: ContractError | None = None
    put_aside: int = 0

    def put_dead_letters(self) -> dict[str, Problem | None]:
        return {"c": None}

    def set_paused(self, *, paused: bool) -> None:
        self.log += [f"{self.name} pauses"] if paused else []

    def open(self) -> None:
        self._do("opens", self.opens)

    def report_losses(self) -> None:
        self._do("reports", self.losses)

    def start_replays(self) -> None:
        self._do("replays", None)

    def start(self) -> None:
        self._do("starts", self.starts)

    def end_query(self) -> None:
        self._do("ends", None)

    def keep_out_earlier(self) -> None:
        self._do("keeps out", None)

    def move_claims(self) -> None:
        self._do("moves claims", None)

    def stop(self) -> None:
        self._do("stops", self.stops)

    def has_hidden_rows(self) -> bool:
        return False

    def _do(self, what: str, failure: ContractError | None) -> None:
        self.log.append(f"{self.name} {what}")
        if failure is not None:
            raise failure


@dataclass
class Run:
    """A run of two stages, `a` and `b`."""

    failing: dict[str, dict[str, ContractError]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    stopped: list[tuple[str, str]] = field(default_factory=list)

    def make(self, name: str) -> RunningStage:
        return cast(
            RunningStage, Stage(name, self.log, **cast(dict[str, Any], self.failing.get(name, {})))
        )

    def report(self, name: str, cause: BaseException, put_aside: int) -> None:
        self.stopped.append((name, str(cause)))

    def stages(self, *left_out: str) -> RunStages:
        stages = RunStages(self.make, self.report, left_out=left_out)
        stages.add(sorted({"a", "b"} - {*left_out}))
        return stages


def names(stages: RunStages) -> set[str]:
    return {stage.name for stage in stages.going}


@pytest.mark.parametrize("step", ["opens", "losses", "starts"])
def test_a_failure_of_its_own_stops_a_stage_and_the_other_goes_on(step: str) -> None:
    run = Run({"a": {step: OWN}})
    stages = run.stages()
    open_stages(stages)
    start_stages(stages)
    assert names(stages) == {"b"}
    assert run.stopped == [("a", str(OWN))]
    assert "b starts" in run.log
    assert not stages.is_whole


@pytest.mark.parametrize(
    "failure",
    [LOST, Retryable("kafka is away"), SinkSuperseded("later claim")],
    ids=["topic", "world", "claim"],
)
def test_a_failure_of_the_pipeline_ends_the_run(failure: ContractError) -> None:
    run = Run({"a": {"starts": failure}})
    stages = run.stages()
    with pytest.raises(StageFailed) as raised:
        start_stages(stages)
    assert raised.value.__cause__ is failure
    assert run.stopped == []


def test_a_lost_topic_counts_more_than_a_failure_of_one_stage() -> None:
    run = Run({"a": {"losses": OWN}, "b": {"losses": LOST}})
    with pytest.raises(StageFailed):
        open_stages(run.stages())
    assert run.stopped == []


def test_a_run_without_a_stage_ends() -> None:
    run = Run({"a": {"starts": OWN}, "b": {"starts": OWN}})
    with pytest.raises(StageFailed):
        start_stages(run.stages())
    assert {name for name, _ in run.stopped} == {"a", "b"}


def follow_starts(stages: RunStages, *names: str, paused: bool = False) -> list[int]:
    """Follow an order to start these. Return the numbers of orders that are reported."""
    control, orders = RunControl(), list[int]()
    control.start_stages(StageStarts(names, 1))
    pausing = Pausing((), control, PauseState(paused, 0), lambda _: None)
    StageStarting(stages, control, pausing, orders.append).follow()
    return orders


def test_a_stage_that_is_left_out_starts_by_an_order() -> None:
    run = Run()
    stages = run.stages("a")
    assert follow_starts(stages, "a") == [1]
    assert names(stages) == {"a", "b"}
    assert run.log == ["a opens", "a reports", "a replays", "a starts"], "nothing is done to b"
    assert stages.is_whole


def test_a_stage_that_has_stopped_is_made_anew() -> None:
    run = Run({"a": {"starts": OWN}})
    stages = run.stages()
    start_stages(stages)
    run.failing.clear()
    run.log.clear()
    follow_starts(stages, "a")
    assert run.log == ["a stops", "a opens", "a reports", "a replays", "a starts"]
    assert names(stages) == {"a", "b"}


@pytest.mark.parametrize(
    "failure", [OWN, LOST, Retryable("it is away"), UserError([Problem(message="no")])]
)
def test_a_stage_that_cannot_be_started_stays_stopped(failure: ContractError) -> None:
    run = Run({"a": {"opens": failure}})
    stages = run.stages("a")
    assert follow_starts(stages, "a") == [1]
    assert names(stages) == {"b"}
    assert run.stopped == [("a", str(failure))]


def test_a_later_claim_ends_the_run() -> None:
    run = Run({"a": {"opens": SinkSuperseded("later")}})
    with pytest.raises(StageFailed):
        follow_starts(run.stages("a"), "a")


def test_in_a_pause_a_started_stage_begins_no_batch() -> None:
    run = Run()
    follow_starts(run.stages("a"), "a", paused=True)
    moved = ["a moves claims", "a replays", "a starts"]
    assert run.log == ["a pauses", "a opens", "a reports", *moved]


def test_a_stage_that_cannot_be_closed_stays_stopped_and_the_other_goes_on() -> None:
    run = Run({"a": {"starts": OWN, "stops": Retryable("it is away")}})
    stages = run.stages()
    start_stages(stages)
    follow_starts(stages, "a")
    assert names(stages) == {"b"}
    assert run.stopped[-1] == ("a", "it is away")


ASKED = DeadLetterRequest(
    command="c",
    stage=None,
    topic="orders.in",
    topic_id="orders.in#1",
    partition=0,
    offset=4,
    reason="ends the driver",
    by="ada",
)
STAGE = StageDefinition(
    name="a",
    since=1,
    inputs=(
        InputDefinition(
            name="orders", topic="orders.in", topic_id="orders.in#1", root=True, bases={}
        ),
    ),
    sinks=(),
)


def test_a_letter_is_not_put_as_long_as_a_stage_that_reads_the_record_is_stopped() -> None:
    run = Run()
    stages = run.stages("a")
    assert put_dead_letters(stages.going, [ASKED]) == {}, "the other has it"
    (problem,) = put_dead_letters(stages.going, [ASKED], [STAGE]).values()
    assert "stage a" in problem.message
    of_other = replace(ASKED, stage="b")
    assert put_dead_letters(stages.going, [of_other], [STAGE]) == {}
