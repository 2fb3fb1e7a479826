"""What the runner needs from outside: topics, a publisher, earlier records, and drivers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Definition, PipelineRecord, StageDefinition
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.planning import TopicPlan, TopicState
from waybill_stage_runner.core.pipelines.putting import ReplaysTopic
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pool.model import CheckFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The offset of a driver's claim and the id of its topic. A later claim has a higher offset."""

    epoch: int
    lifecycle_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of a check. With `failed` it found nothing: the manifest may be good or not."""

    check_id: str
    problems: tuple[Problem, ...] = ()
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each stage and sink: its columns with their types, as a list in text form."""
    columns_before: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The same for the manifest that is applied now, if it was asked for."""
    alterations: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """For each stage and sink: what its first rows would change in the table, apart from rows."""
    tasks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What each task of a maintenance did, in numbers."""
    failed: CheckFailure | None = None


class Topics(Protocol):
    def ids(self, plans: Iterable[TopicPlan]) -> Mapping[str, str]:
        """Return the ids of the topics that exist, by name.

        Raises UserError if we may not use a topic, and Retryable.
        """

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        """Create missing topics, and return the state of all. Raises as `ids` does."""

    def replays(self) -> ReplaysTopic:
        """Return `waybill.replays`. Raises Retryable."""

    def starts_at(
        self, topics: Mapping[str, TopicState], at_ms: int
    ) -> Mapping[str, Mapping[int, int]]:
        """Return the first offsets that are not older than `at_ms`; their end if there is none.

        Raises Retryable.
        """


class Recovery(Protocol):
    """The messages about pipelines before this runner owned their partitions. Raises Retryable."""

    def commands_id(self) -> str:
        """Return the id of the commands topic as it is now."""

    def records(self, partitions: Iterable[int]) -> Mapping[int, Sequence[PipelineRecord]]:
        """Return the newest record of each pipeline, by partition."""

    def find_answered(self, partitions: Iterable[int]) -> Mapping[int, Sequence[str]]:
        """Return the ids of the commands that were answered lately, by partition."""


class Publisher(Protocol):
    """Writes messages about the pipelines of one partition, until another owner fences it.

    Each call is one transaction. When it returns, all of it is in Kafka. If it raises Retryable, it
    may be in Kafka or not. Then it must be repeated, which does no harm, before anything else is
    written. PartitionLost means that it is not in Kafka, and never will be.
    """

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        """Write the record that is wanted, and the definition that tokens are judged by."""

    def claim(self, record: PipelineRecord) -> Lease:
        """Write the record, which has the number of the run, and announce that a driver is about
        to run.
        """

    def phase(self, state: PipelineState, phase_from: str, *, recorded: bool) -> None:
        """Report the phase. `recorded`: write the record, too."""

    def skipped(self, state: PipelineState, reason: str) -> None:
        """Report why a time of the schedule begins no run, and write the record."""

    def report_blocked(self, state: PipelineState) -> None:
        """Report that what the driver waits for has changed."""

    def maintenance(self, state: PipelineState, maintenance: TableMaintenance) -> None:
        """Report that maintenance of a table was done."""

    def beat(self, states: Sequence[PipelineState]) -> None:
        """Report that the runner of these pipelines lives."""

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None:
        """Answer a command. Readers keep the first of two answers with one id."""


class Drivers(Protocol):
    """Runs and checks in drivers. None of the calls waits for a driver."""

    def start(
        self,
        record: PipelineRecord,
        lease: Lease,
        *,
        urgent: bool,
        closing: tuple[StageDefinition, ...] = (),
    ) -> None:
        """Ask for a run of `record`. Call it only after nothing is left of its earlier run.

        `urgent`: somebody waits for it, so it comes before what is only resumed. `closing`: run no
        stage, but close these sinks.

        Raises Retryable.
        """

    def stop(self, pipeline_uid: str, mode: StopMode) -> None: ...

    def dump_threads(self, pipeline_uid: str) -> None:
        """Let the driver write where its threads are into the run's log, even one that is stopped
        by a signal.
        """

    def pause(self, pipeline_uid: str, *, paused: bool, order: int) -> None:
        """Let a run begin no batch, or begin them again. It reports `order` when that is so."""

    def start_stages(self, pipeline_uid: str, stages: tuple[str, ...], *, order: int) -> None:
        """Let a run start stages that are stopped, while the others go on. It reports `order` when
        it has tried each.
        """

    def check(
        self,
        check_id: str,
        pipeline_uid: str,
        manifest: AppliedManifest,
        *,
        for_run: bool = True,
        before: AppliedManifest | None = None,
        compared_with: str | None = None,
        parallelism: int | None = None,
    ) -> None:
        """Ask for a compile without effect. Its result comes as `Checked`.

        `for_run`: a run of it is likely to follow, with so much `parallelism`. `before`: a manifest
        to report the columns of, too. `compared_with`: the pipeline that has the tables it would
        write, if that is another.
        """

    def maintain(self, check_id: str, record: PipelineRecord, sink: str, *, dry_run: bool) -> None:
        """Ask for maintenance of a sink's table. What was done comes as `Checked`."""

    def newest_log(self, pipeline_uid: str, lines: int) -> Sequence[str]:
        """Return the newest lines of the log that the pipeline's runs wrote here."""

    def forget_check(self, check_id: str) -> None:
        """Drop the check: nobody waits for it any more."""
