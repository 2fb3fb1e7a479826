"""What a sink lost with its topic, for tokens whose readers of that topic were removed since."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from waybill_shared.contract.events import Definition, StageDefinition
from waybill_shared.contract.slots import Removal, sink_key
from waybill_shared.contract.vectors import Vector, nearer
from waybill_status.core.views import View


def as_read(
    view: View, definition: Definition, removals: Sequence[Removal], generation: int
) -> View:
    """What a sink lost with its topic is not lost to tokens of `generation`, which waited for its
    readers, if those had it. It stays so when they are removed, and the sink is the last one."""
    if not removals or not view.losses:
        return view
    stages = [*definition.stages, *(stage for each in removals for stage in each.stages)]
    read: dict[str, Vector] = {}
    for removal in removals:  # of several the last, for then others were not waited for any more
        read |= _read_by(removal, generation, stages, view)
    losses = {key: each.where_unread(read.get(key, {})) for key, each in view.losses.items()}
    return replace(view, losses=losses)


def _read_by(
    removal: Removal, generation: int, stages: Iterable[StageDefinition], view: View
) -> dict[str, Vector]:
    """By sink whose readers are among the removed: how far all have come that were waited for."""
    read: dict[str, Vector] = {}
    for stage in removal.stages:
        writers = _writers(stage, stages)
        for sink in (sink for sink in stage.sinks if sink.since <= generation):
            reached = view.reached.get(sink_key(stage.name, sink.name, sink.since), {})
            read |= {key: nearer(read.get(key, reached), reached) for key in writers}
    return read


def _writers(reader: StageDefinition, stages: Iterable[StageDefinition]) -> set[str]:
    """The sinks that fill, or have filled, the topics which a stage read."""
    read = {topic_id for i in reader.inputs for topic_id in (i.topic_id, *i.retired)}
    return {
        sink_key(stage.name, sink.name, sink.since)
        for stage in stages
        for sink in stage.sinks
        if read & {sink.topic_id, *sink.retired}
    }
