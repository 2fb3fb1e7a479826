"""What the runner needs of the world: topics, a voice in Kafka, the past, and driver processes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from waybill_shared.contract.driver_news import TableUpkeep
from waybill_shared.contract.events import Definition, PipelineRecord, Problem, StageDefinition
from waybill_stage_runner.core.moves import Answer
from waybill_stage_runner.core.placing import CheckFailure
from waybill_stage_runner.core.planning import TopicPlan, TopicState
from waybill_stage_runner.core.states import PipelineState


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Where the claim of a driver stands, and in which topic: a later one stands behind it."""

    epoch: int
    lifecycle_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check has found. With `failed` it has found nothing: the text may be good or not."""

    check_id: str
    problems: tuple[Problem, ...] = ()
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By stage and sink, as a list of columns with their types."""
    columns_before: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The same of the manifest that is applied now, as far as it was asked for."""
    alterations: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """By stage and sink, what the first rows would change beside rows."""
    upkeep: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of a maintenance: by task, what was done, in numbers."""
    failed: CheckFailure | None = None


class Topics(Protocol):
    def ids(self, plans: Iterable[TopicPlan]) -> Mapping[str, str]:
        """Of those that exist, by name. UserError where we may not use one; raises Retryable."""

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        """Create what is missing and say how the topics stand. Raises as `ids` does."""


class Past(Protocol):
    """What was said of pipelines before this runner had their partitions. Raises Retryable."""

    def commands_id(self) -> str:
        """Of the topic of commands as it is now."""

    def records(self, partitions: Iterable[int]) -> Mapping[int, Sequence[PipelineRecord]]:
        """The newest of each pipeline, by partition."""

    def answered(self, partitions: Iterable[int]) -> Mapping[int, Sequence[str]]:
        """Ids of the commands that were answered lately, by partition."""


class Publisher(Protocol):
    """Says things of the pipelines of one partition; whoever took the partition over shuts it out.

    Each call is one transaction. When it returns, all of it stands in Kafka. When it raises
    Retryable it may stand there or not: repeat it, which does no harm, before anything else is
    said. PartitionLost: it does not stand there, and never will.
    """

    def change(self, record: PipelineRecord, definition: Definition | None) -> None:
        """What is wanted, and what follows from it for tokens."""

    def claim(self, record: PipelineRecord) -> Lease:
        """Announce that a driver is about to run."""

    def phase(self, state: PipelineState, phase_from: str) -> None: ...

    def blocked(self, state: PipelineState) -> None:
        """What its driver waits for has changed."""

    def upkeep(self, state: PipelineState, upkeep: TableUpkeep) -> None:
        """A table of it was kept in order."""

    def beat(self, states: Sequence[PipelineState]) -> None:
        """That the runner of these lives."""

    def answer(self, answer: Answer, generation: int | None, warnings: tuple[str, ...]) -> None: ...


class Drivers(Protocol):
    """What runs in drivers, by pipeline uid. None of these waits for a driver."""

    def start(
        self,
        record: PipelineRecord,
        lease: Lease,
        *,
        urgent: bool,
        closing: tuple[StageDefinition, ...] = (),
    ) -> None:
        """Only after nothing is left of an earlier run of this pipeline.

        `urgent`: somebody waits for it, so it comes before what is only resumed. `closing`: run no
        stage of `record`, but close these of its sinks.

        Raises Retryable.
        """

    def stop(self, pipeline_uid: str, *, force: bool) -> None: ...

    def check(
        self,
        check_id: str,
        pipeline_uid: str,
        manifest: str,
        *,
        for_run: bool = True,
        before: str | None = None,
        compared_with: str | None = None,
    ) -> None:
        """Compile it without effect; what is found comes as `Checked`.

        `for_run`: a run of it is likely to follow. `before`: tell the columns of this one, too.
        `compared_with`: the pipeline whose tables it would write, if that is another.
        """

    def maintain(self, check_id: str, record: PipelineRecord, sink: str, *, dry_run: bool) -> None:
        """Keep the table of a sink in order; what was done comes as `Checked`."""

    def newest_log(self, pipeline_uid: str, lines: int) -> Sequence[str]:
        """The newest lines of the log of its runs here."""

    def forget_check(self, check_id: str) -> None:
        """Nobody waits for it any more."""
