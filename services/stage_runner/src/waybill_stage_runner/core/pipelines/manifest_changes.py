"""Lists what a changed manifest would change in a pipeline, one line for each change.

It only describes. `compatibility` decides what is refused. Never does I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from waybill_shared.contract.events import NEVER, PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import find_before
from waybill_shared.contract.manifest.dead_letter_settings import DeadLetterSettings
from waybill_shared.contract.manifest.model import Manifest, Sink, Stage
from waybill_shared.contract.manifest.schedules import ScheduleSettings
from waybill_shared.contract.manifest.triggers import describe
from waybill_shared.contract.words import LossReason
from waybill_stage_runner.core.pipelines.change import Change
from waybill_stage_runner.core.pipelines.column_changes import column_texts, split_columns
from waybill_stage_runner.core.pipelines.input_changes import input_changes

CONTINUES: Final = "continues where it is"
LOST: Final = f"older tokens that it has not processed end lost, {LossReason.SINK_REMOVED}"
SHARED: Final = "shared"

Columns = Mapping[str, Mapping[str, str]]
"""For each stage and sink: its columns with their types, as a list in text form."""
Alterations = Mapping[str, Mapping[str, tuple[str, ...]]]
"""For each stage and sink: what its first rows would change in the table, apart from rows."""


def changes_of(
    before: PipelineRecord,
    *,
    manifest_before: Manifest,
    manifest_now: Manifest,
    stages_now: Sequence[StageDefinition],
    columns_before: Columns,
    columns_now: Columns,
    alterations: Alterations,
) -> tuple[Change, ...]:
    pairs = ((stage.name, find_before(stage, before.stages)) for stage in stages_now)
    known = {name: was for name, was in pairs if was is not None}
    found = [
        *_name(before, manifest_now),
        *_state(before, manifest_now),
        *_schedule(manifest_before.schedule, manifest_now.schedule),
        *_parallelism(manifest_before.parallelism, manifest_now.parallelism),
        *_dead_letter(manifest_before.dead_letter, manifest_now.dead_letter),
        *input_changes(manifest_before.inputs, manifest_now.inputs),
        *_stages(before, known, stages_now, manifest_before, manifest_now),
        *_columns(known, stages_now, columns_before, columns_now),
        *_alterations(alterations),
    ]
    return tuple(found)


def only_text() -> Change:
    message = f"~ manifest: only its text changed; each stage {CONTINUES}"
    return Change(kind="change_text", path="", message=message)


def _name(before: PipelineRecord, now: Manifest) -> Iterator[Change]:
    if before.name != now.name:
        message = f"~ pipeline {now.name}: renamed, was {before.name}; each stage {CONTINUES}"
        yield Change(kind="rename_pipeline", path="name", message=message)


def _state(before: PipelineRecord, now: Manifest) -> Iterator[Change]:
    if before.desired != now.state:
        message = f"~ state: it would be {now.state}, is {before.desired}"
        yield Change(kind="change_state", path="state", message=message)


def _schedule(before: ScheduleSettings | None, now: ScheduleSettings | None) -> Iterator[Change]:
    if before != now:
        said, was = ("none" if each is None else each.describe() for each in (now, before))
        message = f"~ schedule: it would be {said}, is {was}; no effect on rows"
        yield Change(kind="change_schedule", path="schedule", message=message)


def _parallelism(before: int | None, now: int | None) -> Iterator[Change]:
    if before != now:
        said, was = ("as the operator says" if each is None else each for each in (now, before))
        message = f"~ parallelism: it would be {said}, is {was}; no effect on rows"
        yield Change(kind="change_parallelism", path="parallelism", message=message)


def _dead_letter(before: DeadLetterSettings, now: DeadLetterSettings) -> Iterator[Change]:
    said = []
    if before.topic != now.topic:
        of_each = "one for each input"
        said.append(f"topic is {now.topic or of_each}, was {before.topic or of_each}")
    if before.budget != now.budget:
        said.append(f"budget is {now.budget}, was {before.budget}")
    if said:
        message = f"~ deadLetter: {', '.join(said)}; what lies there stays"
        yield Change(kind="change_dead_letter", path="deadLetter", message=message)


def _stages(
    before: PipelineRecord,
    known: Mapping[str, StageDefinition],
    stages: Sequence[StageDefinition],
    manifest_before: Manifest,
    manifest_now: Manifest,
) -> Iterator[Change]:
    old_texts = {stage.name: stage for stage in manifest_before.stages}
    new_texts = {stage.name: stage for stage in manifest_now.stages}
    stay = {old.name for old in known.values()}
    wrote = {(s.kind, s.target): stage.name for stage in before.stages for s in stage.sinks}
    for stage in stages:
        if stage.name not in known:
            yield _new_stage(stage, manifest_now, wrote)
            continue
        old = known[stage.name]
        if old.name != stage.name:
            message = f"~ stage {stage.name}: renamed, was {old.name}; {CONTINUES}"
            yield Change(kind="rename_stage", path=f"stages.{stage.name}", message=message)
        if old.name in old_texts:
            pairs = ((sink.name, find_before(sink, old.sinks)) for sink in stage.sinks)
            sinks = {name: was.name for name, was in pairs if was is not None}
            yield from _stage_changes(old_texts[old.name], new_texts[stage.name], sinks)
        yield from _sinks(old, stage)
    for name, removed in ((stage.name, stage) for stage in before.stages):
        if name not in stay:
            wrote_to = ", ".join(f"{sink.kind} {sink.target}" for sink in removed.sinks)
            message = f"- stage {name}: {LOST}; what it wrote stays ({wrote_to})"
            path = f"stages.{name}"
            yield Change(kind="remove_stage", path=path, message=message, effect="loses")


def _new_stage(
    stage: StageDefinition, manifest: Manifest, wrote: Mapping[tuple[str, str], str]
) -> Change:
    starts = [(source.name, _start_of(manifest, source.name)) for source in stage.inputs]
    begins = ", ".join(f"{name} from {starting}" for name, starting in starts)
    to = ", ".join(f"{sink.kind} {sink.target}" for sink in stage.sinks)
    again = [sink for sink in stage.sinks if (sink.kind, sink.target) in wrote]
    writes_again = bool(again) and any(starting != "latest" for _, starting in starts)
    message = f"+ stage {stage.name}: new, reads {begins}; writes {to}"
    if writes_again:
        places = ", ".join(f"{s.target} (stage {wrote[s.kind, s.target]})" for s in again)
        message += f"; writes again what was written before to {places}"
    return Change(
        kind="add_stage",
        path=f"stages.{stage.name}",
        message=message,
        effect="writes_again" if writes_again else "",
    )


def _start_of(manifest: Manifest, name: str) -> str:
    """Return where a new stage starts to read. What another stage writes is read from its start."""
    source = manifest.input(name)
    return "earliest" if source is None else source.starting_offsets


def _stage_changes(old: Stage, now: Stage, names: Mapping[str, str]) -> Iterator[Change]:
    """Yield what changes in a stage that goes on. `names`: of its sinks before, by their names."""
    steps_before = {step.name: step.sql for step in old.steps}
    steps_now = {step.name: step.sql for step in now.steps}
    said = [
        *(f"step {name} added" for name in steps_now if name not in steps_before),
        *(f"step {name} removed" for name in steps_before if name not in steps_now),
        *(
            f"step {name} changed"
            for name, sql in steps_now.items()
            if steps_before.get(name, sql) != sql
        ),
    ]
    if not said and list(steps_before) != list(steps_now):
        said.append("order of steps changed")
    if old.inputs != now.inputs:
        said.append(f"inputs are {', '.join(now.inputs)}, were {', '.join(old.inputs)}")
    before, after = old.effective_trigger, now.effective_trigger
    if before != after:
        said.append(f"trigger is {describe(after)}, was {describe(before)}")
    if old.max_offsets_per_trigger != now.max_offsets_per_trigger:
        said.append(f"maxOffsetsPerTrigger is {now.max_offsets_per_trigger}")
    if old.max_bytes_per_trigger != now.max_bytes_per_trigger:
        said.append(f"maxBytesPerTrigger is {now.max_bytes_per_trigger or 'none'}")
    if said:
        message = f"~ stage {now.name}: {', '.join(said)}; {CONTINUES}"
        yield Change(kind="change_stage", path=f"stages.{now.name}", message=message)
    sinks = {sink.name: sink for sink in old.sinks}
    for sink in now.sinks:
        yield from _sink(now.name, sinks.get(names.get(sink.name, ""), sink), sink)


def _sink(stage: str, old: Sink, now: Sink) -> Iterator[Change]:
    keys = old.settings.model_dump(by_alias=True), now.settings.model_dump(by_alias=True)
    names = [
        name
        for name, value in keys[1].items()
        if name != SHARED and value is not None and keys[0].get(name) != value
    ]
    said = [f"{name} changed" for name in names]
    if now.settings.replaces and now.settings.replaces != old.settings.replaces:
        said.append(f"every batch replaces {now.settings.replaces}")
    if old.source != now.source:
        said.append(f"from is {now.source or 'the last step'}")
    path, start = _sink_path(stage, now.name), f"~ sink {now.name} of stage {stage}:"
    if said:
        message = f"{start} {', '.join(said)}; for new rows"
        yield Change(kind="change_sink", path=path, message=message)
    if (shared := now.settings.admits_others) != old.settings.admits_others:
        message = f"{start} {SHARED} is {str(shared).lower()}; no effect on rows"
        yield Change(kind="change_sink", path=path, message=message)


def _sinks(old: StageDefinition, now: StageDefinition) -> Iterator[Change]:
    kept: set[str] = set()
    for sink in now.sinks:
        was = find_before(sink, old.sinks)
        path = _sink_path(now.name, sink.name)
        if was is not None:
            kept.add(was.name)
        if was is not None and was.name != sink.name:
            message = f"~ sink {sink.name} of stage {now.name}: renamed, was {was.name}"
            yield Change(kind="rename_sink", path=path, message=f"{message}; {CONTINUES}")
        if was is None:
            text = f"{_names_of(now.name, sink)}, gets what is written from now on; nothing older"
            yield Change(kind="add_sink", path=path, message=f"+ {text}")
    for sink in old.sinks:
        if sink.name not in kept:
            waits = sink.awaited_since != NEVER
            text = f"{_names_of(now.name, sink)}, {LOST if waits else 'no token waits for it'}"
            yield Change(
                kind="remove_sink",
                path=_sink_path(now.name, sink.name),
                message=f"- {text}; what it wrote stays",
                effect="loses" if waits else "",
            )


def _names_of(stage: str, sink: SinkDefinition) -> str:
    return f"sink {sink.name} of stage {stage}: {sink.kind} {sink.target}"


def _sink_path(stage: str, sink: str) -> str:
    return f"stages.{stage}.sinks.{sink}"


def _columns(
    known: Mapping[str, StageDefinition],
    stages: Iterable[StageDefinition],
    before: Columns,
    now: Columns,
) -> Iterator[Change]:
    """Yield changed columns of the sinks that continue, if the columns of both manifests
    are known.
    """
    for stage in stages:
        old = known.get(stage.name)
        for sink in stage.sinks if old is not None else ():
            earlier = None if old is None else find_before(sink, old.sinks)
            if old is None or earlier is None:
                continue
            was = before.get(old.name, {}).get(earlier.name)
            will = now.get(stage.name, {}).get(sink.name)
            if was is None or will is None:
                continue
            for text in column_texts(split_columns(was), split_columns(will)):
                message = f"~ sink {sink.name} of stage {stage.name}: {text}"
                path = _sink_path(stage.name, sink.name)
                yield Change(kind="change_columns", path=path, message=message)


def alteration_texts(found: Alterations) -> Iterator[tuple[str, str]]:
    """Yield the path of each sink and the text of an alteration of its table."""
    for stage, sinks in found.items():
        for sink, said in sinks.items():
            for text in said:
                yield _sink_path(stage, sink), f"sink {sink} of stage {stage}: its table {text}"


def notes_of(found: Alterations) -> list[str]:
    """Return only the texts, for a validation that has no pipeline to compare with."""
    return [text for _, text in alteration_texts(found)]


def _alterations(found: Alterations) -> Iterator[Change]:
    for path, text in alteration_texts(found):
        yield Change(kind="change_table", path=path, message=f"~ {text}")
