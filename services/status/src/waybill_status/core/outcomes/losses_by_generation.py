"""Decides if a token lost records together with the topic of a sink. This matters after the readers
of that topic were removed.

1. A stage writes to a topic through its sink, and other stages read it. The token waits for them.
2. The topic is deleted, and the tracker reports its records as lost for the sink.
3. The readers may have read them before. While the readers exist, `reached` shows that.
4. Then the readers are removed, and the sink becomes one that the token waits for.
5. `judge` calls `as_read`, which ignores such losses below the position that the readers had.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from waybill_shared.contract.events import Definition, StageDefinition
from waybill_shared.contract.slots import Removal, sink_key
from waybill_shared.contract.vectors import Vector, nearer
from waybill_status.core.outcomes.views import View


def as_read(
    view: View, definition: Definition, removals: Sequence[Removal], generation: int
) -> View:
    """Return the view in which records that a sink lost with its topic are not lost for tokens of
    `generation` if their readers had them. Those tokens waited for the readers. So this stays true
    after the readers are removed and the sink is the last one."""
    if not removals or not view.losses:
        return view
    stages = [*definition.stages, *(stage for each in removals for stage in each.stages)]
    read: dict[str, Vector] = {}
    for removal in removals:  # the last counts: then nobody waited for earlier ones any more
        read |= _read_by(removal, generation, stages, view)
    losses = {key: each.where_unread(read.get(key, {})) for key, each in view.losses.items()}
    return replace(view, losses=losses)


def _read_by(
    removal: Removal, generation: int, stages: Iterable[StageDefinition], view: View
) -> dict[str, Vector]:
    """Return by sink how far all its removed readers were that the token waited for."""
    read: dict[str, Vector] = {}
    for stage in removal.stages:
        writers = _writers(stage, stages)
        for sink in (sink for sink in stage.sinks if sink.since <= generation):
            reached = view.reached.get(sink_key(stage.name, sink.name, sink.since), {})
            read |= {key: nearer(read.get(key, reached), reached) for key in writers}
    return read


def _writers(reader: StageDefinition, stages: Iterable[StageDefinition]) -> set[str]:
    """Return the keys of sinks that write, or wrote, the topics that a stage read."""
    read = {topic_id for i in reader.inputs for topic_id in (i.topic_id, *i.retired)}
    return {
        sink_key(stage.name, sink.name, sink.since)
        for stage in stages
        for sink in stage.sinks
        if read & {sink.topic_id, *sink.retired}
    }
