"""Works out how much of its inputs a pipeline has processed, in offsets. Pure: it judges a token
for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.tokens import Part, pipeline_id
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import OutcomeKind, UnknownReason
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import ARRIVED, SinkJudgement
from waybill_status.core.outcomes.views import View


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReach:
    """One past the last record of a partition, and the first offset that one of the last sinks
    lacks."""

    partition: int
    end: int
    arrived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputProgress:
    """`written`: all since the pipeline started; `arrived`: what all of its last sinks have."""

    name: str
    written: int
    arrived: int
    partitions: tuple[PartitionReach, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkBacklog:
    """`behind`: what of the inputs is still to arrive there."""

    stage: str
    name: str
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineProgress:
    uid: str
    created_at: int
    inputs: tuple[InputProgress, ...]
    sinks: tuple[SinkBacklog, ...]
    complete: bool
    """True if nothing more is to arrive. Tokens say what of it is in dead-letter topics or was
    lost."""

    @property
    def written(self) -> int:
        return sum(each.written for each in self.inputs)

    @property
    def arrived(self) -> int:
        return sum(each.arrived for each in self.inputs)


def progress_of(
    record: PipelineRecord, view: View, ends: Mapping[str, Mapping[int, int]]
) -> PipelineProgress | UnknownReason:
    """Return the progress, or why it is unknown. `ends` by input and partition were read before the
    view. So `complete` means that all that was written by then has arrived."""
    inputs: list[InputProgress] = []
    coming: dict[tuple[str, str], int] = {}
    complete = True
    for source in record.root_inputs().values():
        spans = tuple(_spans(source, ends[source.name]))
        part = Part(
            pipeline_id=pipeline_id(record.tenant, record.pipeline_uid),
            generation=record.generation,
            spans=spans,
        )
        key = (record.tenant, record.pipeline_uid)
        judgement = judge(Claim(pipeline=key, name=record.name, parts=(part,)), view)
        if judgement.kind is OutcomeKind.UNKNOWN:
            return judgement.reason or UnknownReason.SLOT_MISSING
        named = [(stage.name, sink) for stage in judgement.stages for sink in stage.sinks]
        for stage, sink in named:
            coming[stage, sink.name] = coming.get((stage, sink.name), 0) + sink.behind
        sinks = [sink for _, sink in named if sink.required]
        written = sum(span.end - span.start for span in spans)
        behind = max((sink.behind for sink in sinks), default=0)
        lost = judgement.kind is OutcomeKind.LOST
        complete &= judgement.kind in ARRIVED or (lost and behind == 0)
        inputs.append(
            InputProgress(
                name=source.name,
                written=written,
                arrived=max(0, written - behind),
                partitions=tuple(_reach(span, sinks) for span in spans),
            )
        )
    return PipelineProgress(
        uid=record.pipeline_uid,
        created_at=record.created_at,
        inputs=tuple(inputs),
        sinks=tuple(
            SinkBacklog(stage=stage, name=name, behind=behind)
            for (stage, name), behind in coming.items()
        ),
        complete=complete,
    )


def _reach(span: Span, sinks: Sequence[SinkJudgement]) -> PartitionReach:
    coming = (part for sink in sinks for part in sink.coming if part.key == span.key)
    first = min((part.start for part in coming), default=span.end)
    return PartitionReach(partition=span.partition, end=span.end, arrived=first)


def _spans(source: InputDefinition, ends: Mapping[int, int]) -> list[Span]:
    begins = {partition: base for (_, partition), base in source.bases.items()}
    return [
        Span(
            topic_id=source.topic_id,
            partition=at,
            start=begins.get(at, 0),
            end=max(begins.get(at, 0), end),
        )
        for at, end in sorted(ends.items())
    ]
