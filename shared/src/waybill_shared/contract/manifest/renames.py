"""Checks earlier names in a manifest alone. What the pipeline was, only its record says."""

from collections.abc import Iterator, Sequence

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.document import Path
from waybill_shared.contract.manifest.model import Manifest, Sink, Stage

Located = tuple[Path, Problem]
_Named = tuple[Path, Stage | Sink]


def rename_problems(manifest: Manifest) -> Iterator[Located]:
    stages = [(("stages", s), stage) for s, stage in enumerate(manifest.stages)]
    sinks = [
        (("stages", s, "sinks", k), sink)
        for s, stage in enumerate(manifest.stages)
        for k, sink in enumerate(stage.sinks)
    ]
    if manifest.was == manifest.name:
        yield ("was",), _same_name("pipeline", manifest.name)
    yield from _problems("stage", stages)
    yield from _problems("sink", sinks)


def _problems(what: str, named: Sequence[_Named]) -> Iterator[Located]:
    was = {each.name: each.was for _, each in named}
    seen: dict[str, str] = {}
    for path, each in named:
        if each.was is None:
            continue
        problem = _problem(what, each.name, each.was, was)
        if problem is None and each.was in seen:
            message = f"{what} {seen[each.was]!r} says already that it was {each.was!r}"
            problem = Problem(message=message, hint="let one say it: the other one is new")
        seen.setdefault(each.was, each.name)
        if problem is not None:
            yield (*path, "was"), problem


def _problem(what: str, name: str, old: str, was: dict[str, str | None]) -> Problem | None:
    if old == name:
        return _same_name(what, name)
    if old not in was:
        return None
    passed, at = {name}, was[old]
    while at is not None and at in was and at not in passed:
        passed.add(at)
        at = was[at]
    if at == name:
        message = f"{what} {name!r} was {old!r}, in a circle"
        hint = "names cannot be exchanged: tokens still mean each by its own; choose a new name"
        return Problem(message=message, hint=hint)
    hint = f"remove {old!r}, or take `was` out: then {name!r} is a new {what}"
    return Problem(message=f"{what} {old!r} still exists next to {name!r}", hint=hint)


def _same_name(what: str, name: str) -> Problem:
    return Problem(message=f"{what} {name!r} is called so", hint="take `was` out")
