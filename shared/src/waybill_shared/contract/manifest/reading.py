"""Reads a manifest: the way from its text to the model, and the only place that goes it.

`parse_manifest` does these steps in this order. Each step raises UserError with all the problems
that it finds, and the next one runs only if there are none.

1. `yaml_source.read_yaml` parses the text. It refuses texts that are too large, aliases, tags and
   merge keys. The result is a `Document`: a plain tree, and the line and column of each part.
2. `model.Manifest` validates the tree. If the `schema` of an input is a table as SQL, then
   `tables` reads it, and the columns, the key and the connectors come from there. The settings of
   a sink are validated by the model of its kind, which `sinks.KINDS` names.
3. If pydantic finds errors, `form.find_form_problems` makes them sentences: wrong keys,
   wrong values, the likely name.
4. `checks.find_problems` looks at what no single part shows: names and topics that are used
   twice, missing sources, cycles of stages.
5. `Document.place` adds the line and column to each problem.

Nobody else parses: services and drivers get the text and call `parse_manifest`, which is cached.
Problems that are found later (by Spark, by a sink) have a path only; `place` adds the position.
"""

from collections.abc import Sequence
from functools import lru_cache

from pydantic import ValidationError

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.checks import find_problems
from waybill_shared.contract.manifest.document import Path
from waybill_shared.contract.manifest.form import find_form_problems
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.yaml_source import read_yaml


@lru_cache(maxsize=1_000)  # a command asks several times what it says, and what others say
def parse_manifest(text: str, *, reserved: str | None = None) -> Manifest:
    """Parse and check the manifest in `text`.

    Raise UserError with every problem and its place if there are any.

    Topics with names that start with `reserved` and a dot are Waybill's own.
    """
    document = read_yaml(text)
    try:
        manifest = Manifest.model_validate(document.tree)
    except ValidationError as error:
        raise UserError(find_form_problems(document, error)) from error
    problems = [
        document.place(problem, path) for path, problem in find_problems(manifest, reserved)
    ]
    if problems:
        raise UserError(problems)
    return manifest


def place(problems: Sequence[Problem], text: str) -> tuple[Problem, ...]:
    """Add the line and column to problems that have a dotted path in the manifest.

    An item of a list may have its name in the path; in the result it has its number.
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
