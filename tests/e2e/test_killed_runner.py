"""A runner that is killed in each phase of a pipeline: the next one brings about what was asked.

Its history has no gap and no lie: what was there before stays, each phase follows from the one
before or from a take-over, and each run ends once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import WAIT_S, EverySink
from e2e.faults import kill_services
from e2e.test_ending_pipelines import NOW, Ending
from e2e.under_load import await_done
from e2e.waiting import eventually
from waybill import Client
from waybill.histories import PipelineEvent, PipelineRun
from waybill.models import Operation
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.process.failpoints import REACHED

CREATED = "Created"
"""From here a runner begins with each pipeline that it takes over."""


@dataclass
class Site:
    """One pipeline for the whole file."""

    pipeline: EverySink
    stack: StackState
    failpoints: Path
    armed: list[Path] = field(default_factory=list)
    asked: list[Operation] = field(default_factory=list)
    """What the runner that is killed did not answer."""

    @property
    def client(self) -> Client:
        return self.pipeline.client

    @property
    def name(self) -> str:
        return self.pipeline.name

    def hold(self, point: str, go: Callable[[], object]) -> None:
        """Its driver is at that point, and stays there."""
        armed = self.failpoints / f"{self.pipeline.uid}.{point}"
        self.armed.append(armed.with_name(armed.name + REACHED))
        armed.touch()
        go()
        eventually(self.armed[-1].exists, within_s=WAIT_S)

    def let_go(self) -> None:
        for reached in self.armed:
            reached.unlink(missing_ok=True)
        self.armed.clear()

    def hold_batch(self) -> None:
        self.hold("iceberg.before_commit", lambda: self.pipeline.send(5))

    def hold_start(self) -> None:
        self.pipeline.stop()
        self.hold("after_put", lambda: self.ask(self.client.start(self.name, wait_s=0)))

    def ask(self, operation: Operation) -> None:
        self.asked.append(operation)

    def change_batch(self, change: Callable[[Client, str], Operation]) -> None:
        """While a batch runs."""
        self.hold_batch()
        self.ask(change(self.client, self.name))

    def crash(self) -> None:
        self.hold_batch()
        self.pipeline.kill_driver()

    def pause(self) -> None:
        await_done(self.client, self.client.pause(self.name))
        self.pipeline.send(5)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pipeline is brought into one of `phases`; with another runner it comes to `then`."""

    bring: Callable[[Site], object]
    phases: frozenset[str]
    then: str


def changing(change: Callable[[Client, str], Operation], *phases: str, then: str) -> Case:
    return Case(bring=lambda site: site.change_batch(change), phases=frozenset(phases), then=then)


CASES = {
    "Starting": Case(bring=Site.hold_start, phases=frozenset({"Starting"}), then="Running"),
    "Running": Case(bring=Site.hold_batch, phases=frozenset({"Running"}), then="Running"),
    "Paused": Case(bring=Site.pause, phases=frozenset({"Paused"}), then="Paused"),
    "Recovering": Case(
        bring=Site.crash, phases=frozenset({"Recovering", "Scheduling", "Starting"}), then="Running"
    ),
    "Stopping": changing(
        lambda client, name: client.stop(name, wait_s=0),
        *("Stopping", "CheckpointStopping"),
        then="Stopped",
    ),
    "Draining": changing(
        lambda client, name: client.stop(name, "drain", wait_s=0),
        *("Stopping", "Draining"),
        then="Stopped",
    ),
    "Restarting": changing(
        lambda client, name: client.restart(name, wait_s=0),
        *("Stopping", "Restarting"),
        then="Running",
    ),
    "Rescaling": changing(
        lambda client, name: client.rescale(name, 1, wait_s=0), "Rescaling", then="Running"
    ),
    "Stopped": Case(
        bring=lambda site: site.pipeline.stop(), phases=frozenset({"Stopped"}), then="Stopped"
    ),
}


@pytest.fixture(scope="module")
def site(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog, failpoints: Path
) -> Site:
    pipeline = EverySink(client, stack, kafka, catalog)
    pipeline.assert_once(pipeline.send(5))
    return Site(pipeline, stack, failpoints)


@pytest.mark.parametrize("phase", CASES)
def test_a_runner_that_is_killed_has_a_successor_that_does_what_was_asked(
    site: Site, phase: str
) -> None:
    client, name, case = site.client, site.name, CASES[phase]
    case.bring(site)
    eventually(lambda: client.pipeline(name).phase in case.phases, within_s=WAIT_S)
    before = [*client.history(name, after="0")]
    kill_services(site.stack, ["stage_runner"])
    site.let_go()
    later = site.pipeline.send(5)
    client.wait_pipeline(name, case.then, WAIT_S)
    for operation in site.asked:
        await_done(client, operation)
    site.asked.clear()
    if case.then != "Running":
        assert client.outcome(later).kind == "in_progress"
        go_on = client.resume if case.then == "Paused" else client.start
        await_done(client, go_on(name))
    site.pipeline.assert_once(later)

    after = [*client.history(name, after="0")]
    assert after[: len(before)] == before, "what was reported stays"
    assert_whole(after)
    assert_ends([*client.runs(name, after="0")])


def test_a_runner_that_is_killed_in_finishing_has_a_successor_that_runs_nothing_again(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog, failpoints: Path
) -> None:
    """All that there was is in every sink. It may read again what it has read, and adds nothing."""
    ending = Ending(client, stack, kafka, catalog, NOW)
    token = ending.send()
    point = failpoints / f"{ending.uid}.after_finished"
    point.touch()
    ending.done(client.start(ending.name))
    reached = point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    eventually(lambda: client.pipeline(ending.name).phase == "Finishing", within_s=WAIT_S)
    kill_services(stack, ["stage_runner"])
    reached.unlink()
    ending.finish()
    ending.assert_once(token)
    kill_services(stack, ["stage_runner"])
    ending.finish()
    runs = client.pipeline(ending.name).run
    ending.assert_once(token)
    assert_whole([*client.history(ending.name, after="0")])
    assert_ends([*client.runs(ending.name, after="0")])
    assert client.pipeline(ending.name).run == runs, "what has finished is not run again"


def assert_whole(events: Sequence[PipelineEvent]) -> None:
    """Each phase follows from the one before, or another runner has taken over."""
    assert not any(each.gap for each in events)
    assert len({each.id for each in events}) == len(events)
    moves = [each for each in events if each.kind == "transition"]
    torn = [
        (earlier.phase, later.phase_from, later.phase)
        for earlier, later in pairwise(moves)
        if later.phase_from not in (earlier.phase, CREATED)
    ]
    assert not torn, torn


def assert_ends(runs: Sequence[PipelineRun]) -> None:
    """Each run is there once, and all but the newest have ended, each before the next one began.

    When a run has ended is not known if its runner was killed meanwhile.
    """
    assert [each.run for each in runs] == [*range(1, len(runs) + 1)]
    assert all(each.began for each in runs)
    assert all(each.end for each in runs[:-1])
    assert all(each.ended or each.end == "taken_over" for each in runs[:-1])
    assert all(
        earlier.ended <= later.began
        for earlier, later in pairwise(runs)
        if earlier.ended and later.began
    )
