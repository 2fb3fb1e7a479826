"""Gives an applied manifest another name for its pipeline. All else in its text stays, with its
comments, unless the name is written in a way that no person writes it."""

import json
import re
from dataclasses import replace
from typing import Final

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.yaml_source import read_yaml

SCALAR: Final = re.compile(r"(?P<quote>['\"]?)[a-z][a-z0-9_-]*(?P=quote)")
"""A name as a manifest may have it: in quotes or not."""


def rename_manifest(applied: AppliedManifest, name: str, *, was: str) -> AppliedManifest:
    """Return the manifest that calls the pipeline so. If it says what that one was, it says `was`
    from now on. Raise UserError if it is not valid in this version any more.
    """
    tree = json.loads(applied.native)
    names = {"name": name, **({"was": was} if "was" in tree else {})}
    wanted = {**tree, **names}
    text = applied.source
    for key, value in names.items():
        text = _put(text, key, value)
    try:
        edited = read_manifest(text)
    except UserError:
        edited = None
    if edited is None or json.loads(edited.native) != wanted:
        edited = read_manifest(json.dumps(wanted, indent=2, ensure_ascii=False))
    return replace(edited, notes=applied.notes)


def _put(text: str, key: str, value: str) -> str:
    """Return the text with `value` where the name at `key` was."""
    line, column = read_yaml(text).marks[key,]
    lines = text.split("\n")
    before, after = lines[line - 1][: column - 1], lines[line - 1][column - 1 :]
    lines[line - 1] = before + SCALAR.sub(rf"\g<quote>{value}\g<quote>", after, count=1)
    return "\n".join(lines)
