"""Which stages and sinks the records of a root topic reach. Pure."""

from collections.abc import Iterator, Sequence, Set

from waybill_shared.contract.events import InputDefinition, SinkDefinition, StageDefinition
from waybill_shared.contract.slots import sink_key, stage_key


def is_root(source: InputDefinition, topic_id: str) -> bool:
    return source.root and topic_id in (source.topic_id, *source.retired)


def descendants(stages: Sequence[StageDefinition], topic_id: str) -> frozenset[str]:
    """Return the keys of the stages that the records of a root topic pass, on any path."""
    found: set[str] = set()
    topics: set[str] = set()
    while reached := [
        stage
        for stage in stages
        if stage_key(stage) not in found and _reads(stage, topic_id, topics)
    ]:
        found |= {stage_key(stage) for stage in reached}
        topics |= {
            topic_id
            for stage in stages
            if stage_key(stage) in found
            for sink in stage.sinks
            for topic_id in _ids(sink)
        }
    return frozenset(found)


def named_sinks(
    stages: Sequence[StageDefinition], topic_id: str, generation: int, names: Sequence[str]
) -> Iterator[tuple[str, SinkDefinition]]:
    """Yield the sinks on a path from the topic for which tokens of `generation` may wait, each with
    its key. `names` selects some; without names, all are meant.
    """
    behind = descendants(stages, topic_id)
    for stage in stages:
        for sink in stage.sinks if stage_key(stage) in behind else ():
            waits = max(sink.since, sink.awaited_since) <= generation
            if waits and (not names or sink.name in names):
                yield sink_key(stage.name, sink.name, sink.since), sink


def root_topics(stages: Sequence[StageDefinition], generation: int) -> frozenset[str]:
    """Return the ids of the topics that tokens of `generation` may name, retired ids too."""
    return frozenset(
        topic_id
        for stage in stages
        for source in stage.inputs
        if source.root and any(sink.since <= generation for sink in stage.sinks)
        for topic_id in (source.topic_id, *source.retired)
    )


def sinks_into(
    read: Set[str], stages: Sequence[StageDefinition], topic_id: str, generation: int
) -> Iterator[tuple[str, SinkDefinition]]:
    """Yield those of `named_sinks` that write to a topic with an id in `read`."""
    for key, sink in named_sinks(stages, topic_id, generation, ()):
        if read & _ids(sink):
            yield key, sink


def towards(
    keys: Sequence[str], stages: Sequence[StageDefinition], generation: int
) -> list[StageDefinition]:
    """Return the stages on a path to one of these sinks, for tokens of `generation`."""
    found = [stage for stage in stages if _has(stage, keys)]
    while True:
        inner = [source for stage in found for source in stage.inputs if not source.root]
        read = {each for source in inner for each in (source.topic_id, *source.retired)}
        more = [
            stage
            for stage in stages
            if stage not in found
            and any(read & _ids(s) and s.since <= generation for s in stage.sinks)
        ]
        if not more:
            return found
        found += more


def _ids(sink: SinkDefinition) -> set[str]:
    """Return the ids of its topic, which may have been created again since a reader was removed."""
    return {topic_id for topic_id in (sink.topic_id, *sink.retired) if topic_id}


def _has(stage: StageDefinition, keys: Sequence[str]) -> bool:
    return any(sink_key(stage.name, sink.name, sink.since) in keys for sink in stage.sinks)


def _reads(stage: StageDefinition, topic_id: str, topics: set[str]) -> bool:
    return any(
        is_root(source, topic_id) or (not source.root and source.topic_id in topics)
        for source in stage.inputs
    )
