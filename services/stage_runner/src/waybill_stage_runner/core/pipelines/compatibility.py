"""Decides with which changes an existing pipeline can continue. Never does I/O.

A checkpoint belongs to its topics, a fence to its sink, and the positions in `reached` to root
inputs. A stage or sink that continues must therefore keep them. Under another name it is a new
stage or a new sink, unless it says what it `was`: see `renaming`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import find_before, names_of
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.slots import stage_key
from waybill_shared.contract.topology import StageSink, Topology
from waybill_shared.contract.words import LossReason

NEW_NAME_HINT: Final = (
    "a stage under a new name, without `was`, starts again: it writes again what its inputs still"
    " hold"
)
NEW_PLACE_HINT: Final = (
    "add a second sink for the new place, and remove this one when the new one has started; "
    f"{NEW_NAME_HINT}"
)


def refuse_recreated(before: PipelineRecord, ids: Mapping[str, str]) -> None:
    """Raise UserError if a topic that a stage reads was deleted or created again.

    `ids` are those of the topics that exist. A person must choose where to start in a new topic. A
    topic that no stage reads is only written, so there is nothing to choose.
    """
    read = {i.topic: i.topic_id for stage in before.stages for i in stage.inputs}
    reason = LossReason.TOPIC_RECREATED
    hint = f"choose where to begin: {_restart(before, 'earliest')}, or latest"
    problems = [
        Problem(message=f"{reason}: {_recreation(topic, was, ids.get(topic))}", hint=hint)
        for topic, was in sorted(read.items())
        if ids.get(topic) != was
    ]
    if problems:
        raise UserError(problems, Slug.BEGINNING_NEEDED)


def find_recreated(before: PipelineRecord, ids: Mapping[str, str]) -> list[str]:
    """Return the topics that stages read or write and that were deleted or created again."""
    known = {i.topic: i.topic_id for stage in before.stages for i in stage.inputs}
    written = (sink for stage in before.stages for sink in stage.sinks)
    known |= {sink.target: sink.topic_id for sink in written if sink.topic_id is not None}
    return sorted(topic for topic, was in known.items() if ids.get(topic) != was)


def explain_recreated(record: PipelineRecord, topics: Iterable[str]) -> Problem:
    """Return why stages cannot begin at a time or at offsets now."""
    message = f"deleted or created again, so no offset of before counts: {', '.join(topics)}"
    hint = f"{_restart(record, 'earliest')} first: it goes on in the new topics"
    return Problem(message=message, hint=hint)


def _recreation(topic: str, was: str, now: str | None) -> str:
    found = "it does not exist" if now is None else f"it has id {now}"
    return f"topic {topic} had id {was}, now {found}"


def _restart(record: PipelineRecord, start_from: str) -> str:
    return f"`waybill restart {record.name} --from {start_from}`"


def refuse_incompatible(before: PipelineRecord, after: tuple[StageDefinition, ...]) -> None:
    """Raise UserError if a stage that continues has other topics, writers or sinks than before.

    A checkpoint belongs to its topics and a fence to its sink, so these must stay the same.
    """
    wrote, writes = Topology(before.stages), Topology(after)
    for stage in after:
        old = find_before(stage, before.stages)
        if old is None:
            continue
        was, now = _topics(old), _topics(stage)
        if was != now:
            changed = f"read {_list_names(was)}, now it would read {_list_names(now)}"
            hint = _topics_created_again(before, was, now) or NEW_NAME_HINT
            raise _incompatible(stage.name, changed, "inputs", hint)
        _refuse_turned_inputs(old, stage)
        _refuse_other_writers(stage, wrote, writes)
        _refuse_renamed_sinks(old, stage)
        _refuse_other_sinks(before, old, stage)


def _refuse_turned_inputs(old: StageDefinition, stage: StageDefinition) -> None:
    """Refuse a root input that becomes the output of another stage, or the reverse.

    Progress of tokens is counted in root inputs, so an input of a stage must stay of its sort.
    """
    roots = {source.topic_id for source in old.inputs if source.root}
    for source in stage.inputs:
        if source.root != (source.topic_id in roots):
            outside, inside = "an input of the pipeline", "what another stage writes"
            was, now = (inside, outside) if source.root else (outside, inside)
            changed = f"read {source.topic} as {was}, now it would read it as {now}"
            raise _incompatible(
                stage.name, changed, "inputs", f"give it a new name: {NEW_NAME_HINT}"
            )


def _refuse_other_writers(stage: StageDefinition, wrote: Topology, writes: Topology) -> None:
    """Refuse an input that another stage or sink fills from now on.

    The stage may not have read all that the earlier writer wrote. The commits of the new writer say
    nothing of it.
    """
    for source in stage.inputs:
        was, now = wrote.writers(source), writes.writers(source)
        if was and now and {*map(_writer, was)} != {*map(_writer, now)}:
            old, new = was[-1].stage.name, now[-1].stage.name
            changed = f"read what stage {old} wrote to {source.topic}, now stage {new} would"
            keep = f"keep the name {old}, or give stage {stage.name} a new name, too"
            hint = f"{keep}: {NEW_NAME_HINT}"
            raise _incompatible(stage.name, changed, "inputs", hint)


def _writer(writer: StageSink) -> tuple[str, str]:
    return stage_key(writer.stage), writer.key


def _refuse_renamed_sinks(old: StageDefinition, stage: StageDefinition) -> None:
    """Refuse a new sink name for the same target, if the sink does not say what it was.

    A new sink would not know which batch was written last under the old name.
    """
    kept = {name for sink in stage.sinks for name in names_of(sink)}
    removed = {_target(sink): sink.name for sink in old.sinks if sink.name not in kept}
    for sink in stage.sinks:
        name = removed.get(_target(sink))
        if name is not None:
            changed = f"wrote {sink.target} as sink {name}, now as sink {sink.name}"
            hint = f"keep the name {name}, or rename it: `was: {name}`"
            raise _incompatible(stage.name, changed, "sinks", hint)


def _refuse_other_sinks(
    before: PipelineRecord, old: StageDefinition, stage: StageDefinition
) -> None:
    """Refuse a sink that changes its target, and a stage that keeps none of its sinks.

    A sink may be added next to those that know how far the stage is. None may change its target.
    """
    kept = [(find_before(sink, old.sinks), sink) for sink in stage.sinks]
    for earlier, sink in kept:
        if earlier is not None and _target(earlier) != _target(sink):
            was, now = {_target(earlier)}, {_target(sink)}
            changed = (
                f"wrote {_list_names(was)}, now sink {sink.name} would write {_list_names(now)}"
            )
            hint = _topics_created_again(before, was, now) or NEW_PLACE_HINT
            raise _incompatible(stage.name, changed, "sinks", hint)
    if all(earlier is None for earlier, _ in kept):
        hint = f"keep one of them next to the new ones for a while; {NEW_NAME_HINT}"
        raise _incompatible(stage.name, "would lose all of its sinks", "sinks", hint)


def _topics_created_again(
    before: PipelineRecord, was: set[tuple[str, str]], now: set[tuple[str, str]]
) -> str | None:
    """Return the hint for a topic that was created again under its name; None if names differ."""
    if {name for name, _ in was} != {name for name, _ in now}:
        return None
    goes_on = f"{_restart(before, 'earliest')} (or latest) goes on with it"
    return f"a topic was created again under its old name: {goes_on}"


def _incompatible(stage: str, changed: str, path: str, hint: str) -> UserError:
    slug = Slug.PLAN_INCOMPATIBLE
    message = f"{slug}: stage {stage} {changed}"
    return UserError([Problem(message=message, path=f"stages.{stage}.{path}", hint=hint)], slug)


def _topics(stage: StageDefinition) -> set[tuple[str, str]]:
    return {(source.topic, source.topic_id) for source in stage.inputs}


def _target(sink: SinkDefinition) -> tuple[str, str]:
    return (f"{sink.kind} {sink.target}", sink.topic_id or "")


def _list_names(places: set[tuple[str, str]]) -> str:
    """List them with topic ids, because a topic that was created again keeps its name."""
    return ", ".join(f"{name} ({place})" if place else name for name, place in sorted(places))
