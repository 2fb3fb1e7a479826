"""What stages do to a record, and so what must come out of a pipeline, and where.

A stage is named for what it does: `thin…` drops some records, `twin…` makes two of each, any other
passes it on. A row carries the stages that it went through, and the lives of the Kafka sinks that
wrote it, so every row that was ever made is unique.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from sim.log import Row
from waybill_shared.contract.events import (
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
)
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.contract.slots import key_of

KEPT_OF = 3
Effects = Mapping[tuple[str, str], frozenset[Row]]
"""By stage and sink, all rows that one record must lead to."""
Dead = Callable[[StageDefinition, SinkDefinition | None], frozenset[Row]]
"""Of a stage, and of one of its sinks: which of the records that came there died."""


def transform(uid: str, stage: str, row: Row) -> Iterator[Row]:
    if stage.startswith("thin") and row.number % KEPT_OF == 0:
        return
    step = f"{uid[:4]}.{stage}"
    yield Row(row.number, (*row.path, step))
    if stage.startswith("twin"):
        yield Row(row.number, (*row.path, f"{step}'"))


def of_life(row: Row, since: int) -> Row:
    """As a Kafka sink writes it: the topic may hold what another life of its name wrote."""
    return Row(row.number, (*row.path[:-1], f"{row.path[-1]}#{since}"))


def as_written(rows: Iterable[Row], sink: SinkDefinition) -> Iterable[Row]:
    return rows if sink.topic_id is None else [of_life(row, sink.since) for row in rows]


def writer_of(row: Row) -> tuple[str, int]:
    """The stage, and which life of its sink."""
    step, _, since = row.path[-1].partition("#")
    return step.rstrip("'"), int(since)


def nobody(stage: StageDefinition, sink: SinkDefinition | None) -> frozenset[Row]:
    """Where all records live."""
    return frozenset()


@lru_cache(maxsize=50_000)
def effects(
    uid: str, stages: tuple[StageDefinition, ...], generation: int, topic_id: str, record: Row
) -> Effects:
    """Of a record of the root topic `topic_id`, by the sinks that are as old as `generation`.

    Stages are in the order of their data.
    """
    return effects_beside(uid, stages, generation, (topic_id, record), nobody)


def effects_beside(
    uid: str,
    stages: tuple[StageDefinition, ...],
    generation: int,
    what: tuple[str, Row],
    dead: Dead,
) -> Effects:
    """The same, of what did not die on the way."""
    written: dict[str, frozenset[Row]] = {}
    found: dict[tuple[str, str], frozenset[Row]] = {}
    for stage in stages:
        arriving = {row for i in stage.inputs for row in _arriving(i, *what, written)}
        arriving -= dead(stage, None)
        for sink in (s for s in stage.sinks if s.since <= generation):
            taken = arriving - dead(stage, sink)
            rows = frozenset(out for row in taken for out in transform(uid, first_name(stage), row))
            if sink.topic_id is None:
                found[stage.name, sink.name] = rows
                continue
            mine = frozenset(of_life(row, sink.since) for row in rows)
            found[stage.name, sink.name] = mine
            written[sink.target] = written.get(sink.target, frozenset()) | mine
    return found


def effects_of_letter(
    record: PipelineRecord, generation: int, asked: LetterReplay, row: Row
) -> Iterator[tuple[StageDefinition, SinkDefinition, frozenset[Row]]]:
    """Yield what must be in the sinks that a replay names and in those after them, of a token of
    that generation, if nothing dies on the way."""
    uid, written = record.pipeline_uid, dict[str, frozenset[Row]]()
    for stage in record.stages:
        arriving = {each for i in stage.inputs if not i.root for each in written.get(i.topic, ())}
        for sink in (s for s in stage.sinks if s.since <= generation):
            named = key_of(stage, sink) in asked.sinks
            taken = {row, *arriving} if named else arriving
            rows = frozenset(
                out for each in taken for out in transform(uid, first_name(stage), each)
            )
            rows = frozenset(as_written(rows, sink))
            if rows:
                yield stage, sink, rows
            if sink.topic_id is not None:
                written[sink.target] = written.get(sink.target, frozenset()) | rows


def _arriving(
    source: InputDefinition, topic_id: str, record: Row, written: Mapping[str, frozenset[Row]]
) -> Iterable[Row]:
    if source.root:
        return [record] if topic_id in (source.topic_id, *source.retired) else []
    return written.get(source.topic, frozenset())


def awaited(
    now: PipelineRecord, generation: int, topic_id: str
) -> Iterator[tuple[StageDefinition, SinkDefinition]]:
    """As `required`, and what is as old as the token behind stages that came under new names."""
    topics: set[str] = set()
    old = [s for s in now.stages if any(sink.since <= generation for sink in s.sinks)]
    read = {source.topic for stage in old for source in stage.inputs if not source.root}
    for stage in now.stages:
        if any(_reads(source, topic_id, topics) for source in stage.inputs):
            topics |= {sink.target for sink in stage.sinks if sink.topic_id is not None}
            for sink in stage.sinks:
                if sink.since <= generation and (sink.topic_id is None or sink.target not in read):
                    yield stage, sink


def required(
    now: PipelineRecord, generation: int, topic_id: str
) -> Iterator[tuple[StageDefinition, SinkDefinition]]:
    """The sinks on the way of a root topic that a token of `generation` waits for.

    Those that are as old as the token, are still there, and have no reader that is as old.
    """
    topics: set[str] = set()
    old = [s for s in now.stages if any(sink.since <= generation for sink in s.sinks)]
    read = {source.topic for stage in old for source in stage.inputs if not source.root}
    for stage in now.stages:
        if any(_reads(source, topic_id, topics) for source in stage.inputs):
            mine = [sink for sink in stage.sinks if sink.since <= generation]
            topics |= {sink.target for sink in mine if sink.topic_id is not None}
            for sink in mine:
                inner = sink.topic_id is not None and sink.target in read
                if not inner:
                    yield stage, sink


def _reads(source: InputDefinition, topic_id: str, topics: set[str]) -> bool:
    if source.root:
        return topic_id in (source.topic_id, *source.retired)
    return source.topic in topics
