"""Reads manifests: errors name line, column and fix."""

from collections.abc import Sequence
from functools import lru_cache

from pydantic import ValidationError

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
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
