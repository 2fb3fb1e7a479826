"""Finds the names of the pipeline that a manifest describes, without a YAML library.

Never checks a manifest: Waybill does, with line and column.
"""

import json
import re

from waybill.errors import WaybillError

LINE = (
    r"""^(?:'{key}'|"{key}"|{key})\s*:\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|"""
    r"""(?P<plain>[^\s#'"].*?))\s*(?:(?<=\s)\#.*)?$"""
)


def manifest_name(text: str) -> str:
    """Return the top-level `name` of a YAML or JSON manifest; raise WaybillError if it has none."""
    name = _find(text, "name")
    if not name:
        raise WaybillError("the manifest has no top-level name: add a line as in `name: orders`")
    return name


def earlier_name(text: str) -> str | None:
    """Return the top-level `was` of a manifest: what its pipeline is called until it is applied."""
    return _find(text, "was")


def _find(text: str, key: str) -> str | None:
    return _in_json(text, key) if text.lstrip().startswith("{") else _in_yaml(text, key)


def _in_yaml(text: str, key: str) -> str | None:
    found = re.search(LINE.format(key=key), text, re.MULTILINE)
    return None if found is None else next(group for group in found.groups() if group is not None)


def _in_json(text: str, key: str) -> str | None:
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise WaybillError(f"the manifest is not valid JSON: {error}") from error
    name = manifest.get(key) if isinstance(manifest, dict) else None
    return name if isinstance(name, str) else None
