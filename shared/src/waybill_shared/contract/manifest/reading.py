"""Reads manifests: errors name line, column and fix."""

from collections.abc import Sequence
from functools import lru_cache

from pydantic import BaseModel, ValidationError

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.checks import find_problems
from waybill_shared.contract.manifest.document import Document, Path
from waybill_shared.contract.manifest.fields import IN_WORDS
from waybill_shared.contract.manifest.model import (
    SINK_KEYS,
    Input,
    KafkaInput,
    Manifest,
    Sink,
    Stage,
    Step,
    Trigger,
)
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_shared.contract.manifest.yaml_source import read_yaml
from waybill_shared.contract.suggestions import nearest


@lru_cache(maxsize=64)  # each command asks several times what its manifest says
def parse_manifest(text: str, *, reserved: str | None = None) -> Manifest:
    """The manifest in `text`; UserError with every problem and its place otherwise.

    Topics whose names begin with `reserved` and a dot are Waybill's own.
    """
    document = read_yaml(text)
    try:
        manifest = Manifest.model_validate(document.tree)
    except ValidationError as error:
        raise UserError(_locate(document, error)) from error
    problems = [
        document.place(problem, path) for path, problem in find_problems(manifest, reserved)
    ]
    if problems:
        raise UserError(problems)
    return manifest


def place(problems: Sequence[Problem], text: str) -> tuple[Problem, ...]:
    """Problems that know their dotted path in the manifest, with its line and column.

    In a path, what stands in a list may be named; afterwards all of it is counted.
    """
    document = read_yaml(text)
    return tuple(
        document.place(each, _count(document.tree, each.path.split("."))) if each.path else each
        for each in problems
    )


def _count(at: object, parts: Sequence[str]) -> Path:
    path: list[str | int] = []
    for part in parts:
        number: str | int = part
        if isinstance(at, list):
            names = [str(each.get("name")) for each in at if isinstance(each, dict)]
            number = names.index(part) if part in names else int(part) if part.isdigit() else part
        path.append(number)
        at = _inside(at, number)
    return tuple(path)


def _inside(at: object, part: str | int) -> object:
    if isinstance(at, dict):
        return at.get(part)
    if isinstance(at, list) and isinstance(part, int) and part < len(at):
        return at[part]
    return None


def _locate(document: Document, error: ValidationError) -> list[Problem]:
    items = error.errors()
    paths = [_as_written(document, tuple(item["loc"])) for item in items]
    problems = []
    for item, path in zip(items, paths, strict=True):
        deeper = any(other[: len(path)] == path for other in paths if len(other) > len(path))
        if item["type"] == "too_short" and deeper:
            continue  # its items were refused for reasons of their own
        message, hint = item["msg"].removeprefix("Value error, "), ""
        if item["type"] == "extra_forbidden":
            message, hint = f"unknown key {path[-1]!r}", _known_keys(path)
        elif item["type"] == "missing":
            message = f"{path[-1]!r} is missing"
        elif item["type"] == "string_pattern_mismatch":
            message = f"{item['input']!r:.80} cannot stand here"
            hint = IN_WORDS.get(item["ctx"]["pattern"], "")
        problems.append(document.place(Problem(message=message, hint=hint), path))
    return problems


def _as_written(document: Document, path: Path) -> Path:
    """In the text the settings of a sink stand under the name of their kind."""
    if path[4:5] != ("settings",):
        return path
    stages, s, sinks, k, _, *rest = path
    (kind,) = document.tree[stages][s][sinks][k].keys() & KINDS.keys()
    return (stages, s, sinks, k, kind, *rest)


def _known_keys(path: Path) -> str:
    """The keys that would have been taken where `path` ends, the likeliest first."""
    if " " in str(path[-1]):
        return "a comma ends a text that stands in { }: put the text in quotes"
    keys = _keys_of(_model_at(path[:-1]))
    close = nearest(str(path[-1]), keys)
    return f"did you mean {close!r}?" if close else f"known here: {', '.join(keys)}"


def _model_at(path: Path) -> type[BaseModel]:
    models: dict[str, type[BaseModel]] = {
        "inputs": Input, "stages": Stage, "steps": Step, "sinks": Sink, "trigger": Trigger,
    }  # fmt: skip
    found: type[BaseModel] = Manifest
    for part in path:
        if found is Input and part == "kafka":
            found = KafkaInput
        elif found is Sink and part in KINDS:
            found = KINDS[str(part)].model
        else:
            found = models.get(str(part), found)
    return found


def _keys_of(model: type[BaseModel]) -> list[str]:
    if model is Sink:
        return [*SINK_KEYS, *KINDS]
    return [field.alias or name for name, field in model.model_fields.items()]
