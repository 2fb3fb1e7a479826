"""Decides what a new token covers.

Never talks to Kafka: ends, ids and partitions come in as values.

A token is a list of parts. A part (`part_of`) is one pipeline in one generation, with spans of
offsets. The generation says which sinks the token waits for. There are four ways to a token:

1. Records that ingress wrote itself (over HTTP, from files, as replays): the spans of what Kafka
acknowledged.

2. Positions that a producer names (`named_spans`). `TokenIssuer` first refuses another cluster, a
topic that is no input, another topic id, an unknown partition, and an offset that is not written
yet.

3. All that an input contains now (`stored_spans`). A span starts where every sink takes part, and
ends at the end of the partition. Such a part is not counted: its records are not known one by one.

4. Other tokens (`merge_parts`): the union of their spans, for each pipeline and generation.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.tokens import Part, Token, pipeline_id
from waybill_shared.contract.vectors import Span, Vector, join, merge_spans

StoredOffsets = tuple[int, int]
"""The first offset that a partition still has, and its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSpan:
    """A producer's own records, as it names them: [start, end) of one partition of a topic."""

    topic: str
    topic_id: str | None
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


def part_of(record: PipelineRecord, spans: Sequence[Span], *, counted: bool = True) -> Part:
    return Part(
        pipeline_id=pipeline_id(record.tenant, record.pipeline_uid),
        generation=record.generation,
        spans=tuple(spans),
        counted=counted,
    )


def stored_spans(
    record: PipelineRecord, source: InputDefinition, stored: Mapping[int, StoredOffsets]
) -> tuple[Span, ...]:
    """Return the spans of all that the input contains and that every sink takes part in.

    Records before a span, which only some sinks receive, are waited for too: a sink that has
    reached the end of a span has all below it.
    """
    whole = _whole(record, source.topic_id)
    begins = {
        at: max(start, whole.get((source.topic_id, at), 0)) for at, (start, _) in stored.items()
    }
    spans = [
        Span(topic_id=source.topic_id, partition=at, start=begins[at], end=max(begins[at], end))
        for at, (_, end) in sorted(stored.items())
    ]
    return tuple(span for span in spans if span.end > 0) or tuple(spans)


def _whole(record: PipelineRecord, topic_id: str) -> Vector:
    """Return the offsets from which on every sink after that input receives all of it."""
    whole: Vector = {}
    for source in (i for stage in record.stages for i in stage.inputs):
        if source.topic_id == topic_id:
            whole = join(whole, source.whole)
    return whole


def input_of(record: PipelineRecord, topic: str) -> InputDefinition:
    """Return the root input that reads `topic`; a manifest has at most one. Raises Refusal."""
    roots = record.root_inputs().values()
    for source in roots:
        if source.topic == topic and source.bases:
            return source
    known = sorted({source.topic for source in roots})
    detail = f"topic {topic!r} is no input of pipeline {record.name}"
    hint = f"its inputs: {', '.join(known)}"
    raise Refusal(Slug.TOPIC_NOT_AN_INPUT, detail, hint=hint, known=known)


def check_cluster(named: str, ours: str) -> None:
    """Refuse positions of another Kafka, in which the same offsets are other records."""
    if named != ours:
        detail = f"the positions are of Kafka cluster {named}, the pipeline reads from {ours}"
        hint = "let the producer write to the Kafka of this Waybill, or ask the Waybill of its own"
        raise Refusal(Slug.CLUSTER_UNKNOWN, detail, hint=hint)


def check_identity(position: NamedSpan, topic_id: str) -> None:
    """Refuse a position in a topic that is not the present one of that name."""
    if position.topic_id not in (None, topic_id):
        detail = (
            f"position {position}: topic id {position.topic_id} is not that of the present topic,"
            f" which is {topic_id}: the topic was created again, or the id is of another cluster"
        )
        raise Refusal(Slug.TOPIC_ID_UNKNOWN, detail)


def check_partitions(positions: Sequence[NamedSpan], partitions: Iterable[int]) -> None:
    present = set(partitions)
    for position in positions:
        if position.partition not in present:
            detail = f"position {position}: the topic has partitions {_runs(present)} only"
            raise Refusal(Slug.PARTITION_UNKNOWN, detail)


def beyond(positions: Sequence[NamedSpan], ends: Mapping[int, int]) -> Refusal | None:
    """Return the refusal of the first position that is after the end of its partition."""
    for position in positions:
        if position.end > ends[position.partition]:
            detail = f"position {position}: the partition ends at {ends[position.partition]}"
            return Refusal(Slug.POSITION_BEYOND_END, detail, partition_end=ends[position.partition])
    return None


def _runs(partitions: set[int]) -> str:
    return f"0 to {max(partitions)}" if partitions else "none"


def named_spans(topic_id: str, positions: Iterable[NamedSpan]) -> tuple[Span, ...]:
    return merge_spans(
        Span(topic_id=topic_id, partition=p.partition, start=p.start, end=p.end) for p in positions
    )


def merge_parts(tokens: Iterable[Token]) -> tuple[Part, ...]:
    """Return parts that cover exactly what the tokens cover.

    Generations stay apart, because a generation says which sinks the token waits for. So do
    replays into different sinks.
    """
    spans: dict[tuple[str, int, bool, tuple[str, ...]], list[Span]] = {}
    for part in (part for token in tokens for part in token.parts):
        key = (part.pipeline_id, part.generation, part.counted, part.into)
        spans.setdefault(key, []).extend(part.spans)
    return tuple(
        Part(
            pipeline_id=owner,
            generation=generation,
            spans=merge_spans(covered),
            counted=counted,
            into=into,
        )
        for (owner, generation, counted, into), covered in sorted(spans.items())
    )


def bad_tokens(refused: Sequence[int], expired: Sequence[int]) -> Refusal:
    """Return the refusal of a merge. It lists the index of each text that is no token or is too
    old.
    """
    reasons = dict.fromkeys(refused, "no such token") | dict.fromkeys(expired, "expired")
    rejected = [{"index": index, "reason": reasons[index]} for index in sorted(reasons)]
    first = rejected[0]
    detail = f"merge[{first['index']}]: {first['reason']}"
    if len(rejected) > 1:
        detail += f", and {len(rejected) - 1} more"
    if refused:
        return Refusal(Slug.TOKEN_NOT_FOUND, detail, rejected=rejected)
    return Refusal(Slug.TOKEN_EXPIRED, detail, rejected=rejected)
