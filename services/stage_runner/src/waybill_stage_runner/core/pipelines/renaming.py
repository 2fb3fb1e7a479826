"""Decides which stages and sinks go on under another name, and what a change renames. Pure.

A stage or sink of the manifest continues the one of its name. With `was` it continues the one that
is called so now, or that was called so before it got its present name. A name that one had before
is nobody else's while that one exists: old tokens still mean it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from waybill_shared.contract.commands import Restart, SetOffsets, Start
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Command, PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import Named, find_before, find_meant, is_meant
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.model import Manifest, Sink, Stage
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names
from waybill_shared.contract.topology import sinks_in
from waybill_stage_runner.core.pipelines.names import find_wrong_name

T = TypeVar("T", bound=Named)
TAKE_OUT: Final = "take `was` out: then it is a new one"


@dataclass(frozen=True, slots=True)
class Continued:
    """The stages and sinks that go on, as they were before, by their names in the manifest."""

    stages: dict[str, StageDefinition]
    sinks: dict[str, SinkDefinition]


def find_continued(manifest: Manifest, before: PipelineRecord | None) -> Continued:
    """Return what goes on. Raise UserError where a name or a `was` means nothing, or two things."""
    known = () if before is None else before.stages
    stages, problems = _continue("stage", "stages", manifest.stages, known, known)
    problems += find_wrong_name(manifest, before)
    found: dict[str, SinkDefinition] = {}
    for number, stage in enumerate(manifest.stages):
        own = stages[stage.name].sinks if stage.name in stages else ()
        path = f"stages.{number}.sinks"
        more, wrong = _continue("sink", path, stage.sinks, own, sinks_in(known))
        found |= more
        problems += wrong
    if problems:
        raise UserError(problems, Slug.PLAN_INCOMPATIBLE)
    return Continued(stages=stages, sinks=found)


def find_wrong_names(applied: AppliedManifest) -> tuple[Problem, ...]:
    """Return what a manifest of a new pipeline says wrongly of earlier names."""
    try:
        find_continued(applied.model, None)
    except UserError as error:
        return tuple(applied.place(error.problems))
    return ()


def in_present_names(command: Command, record: PipelineRecord | None) -> Command:
    """Return the command with the present name of the stage that it names."""
    body, stages = command.body, () if record is None else record.stages
    if not isinstance(body, Restart | SetOffsets | Start) or body.stage is None:
        return command
    meant = find_meant(body.stage, stages)
    return command if meant is None else replace(command, body=replace(body, stage=meant.name))


def follow_names(record: PipelineRecord, stages: Iterable[StageDefinition]) -> PipelineRecord:
    """Return the record where what it says of stages has the names that they have from now on. What
    it says of a removed stage goes if another one is called so from now on.
    """
    pairs = [(old, now) for now in stages if (old := find_before(now, record.stages)) is not None]
    names = {(old.name, old.since): now.name for old, now in pairs if old.name != now.name}
    if not names:
        return record
    by_name = {name: now for (name, _), now in names.items()}
    removed = {(name, since) for (_, since), name in names.items()} - names.keys()
    return replace(
        record,
        rewinds=tuple(
            replace(each, stage=names.get((each.stage, each.since), each.stage))
            for each in record.rewinds
            if (each.stage, each.since) not in removed
        ),
        dead_letters=tuple(
            replace(each, stage=by_name.get(each.stage or "", each.stage))
            for each in record.dead_letters
            if each.stage in by_name or each.stage not in names.values()
        ),
    )


def _continue(
    what: str,
    path: str,
    asked: Sequence[Stage | Sink],
    own: Sequence[T],
    everywhere: Sequence[Named],
) -> tuple[dict[str, T], list[Problem]]:
    """Return by name what is continued of `own`, and what is wrong. `everywhere`: all that may have
    had one of these names.
    """
    problems: list[Problem] = []
    names = [each.name for each in asked]
    found: dict[str, T] = {}
    for number, each in enumerate(asked):
        goal = next((one for one in own if one.name == each.name), None)
        if each.was is not None:
            goal = goal or next((one for one in own if one.name == each.was), None)
        here = f"{path}.{number}"
        wrong = [*_find_wrong_was(what, each, own, goal, names)]
        wrong += _find_other(what, each.name, goal, everywhere, names) if not wrong else ()
        problems += (replace(one, path=f"{here}.{one.path}") for one in wrong)
        if goal is not None:
            found[each.name] = goal
    return found, problems


def _find_wrong_was(
    what: str, asked: Stage | Sink, own: Sequence[Named], goal: Named | None, names: Sequence[str]
) -> Iterator[Problem]:
    """Yield why `was` does not say what goes on here."""
    if asked.was is None or (goal is not None and is_meant(goal, (asked.was,))):
        return
    meant = find_meant(asked.was, own)
    if meant is None:
        known = [each.name for each in own]
        hint = hint_of_names(asked.was, known, f"{what}s that can be renamed")
        message = f"{what} {asked.name!r}: no {what} was ever called {asked.was!r} here"
        yield Problem(message=message, path="was", hint=f"{hint}; {TAKE_OUT}" if hint else TAKE_OUT)
    elif goal is not None:
        message = f"{what} {asked.name!r} is another one than {meant.name!r}: two cannot become one"
        yield Problem(message=message, path="was", hint="take `was` out, and remove one of both")
    elif meant.name not in names:
        message = f"{what} {asked.was!r} is called {meant.name!r} now"
        yield Problem(message=message, path="was", hint=_rename_hint(meant.name))


def _find_other(
    what: str, name: str, goal: Named | None, known: Iterable[Named], names: Sequence[str]
) -> Iterator[Problem]:
    """Yield the one that had this name before, if another one is to have it."""
    for other in known:
        if name in other.was and (goal is None or other.name != goal.name):
            hint = _rename_hint(other.name)
            if other.name in names:
                hint = f"give it another name: tokens still mean {other.name!r} by this one"
            message = f"{what} {name!r} is called {other.name!r} now"
            yield Problem(message=message, path="name", hint=hint)


def _rename_hint(name: str) -> str:
    return f"write `name: {name}`; to rename it, keep `name` and write `was: {name}`"
