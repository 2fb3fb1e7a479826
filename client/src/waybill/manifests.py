"""Finds the name of the pipeline a manifest describes, without a YAML library.

Never checks a manifest: Waybill does, with line and column.
"""

import json
import re

from waybill.errors import WaybillError

NAME_LINE = re.compile(
    r"""^(?:'name'|"name"|name)\s*:\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^\s#'"].*?))\s*(?:(?<=\s)\#.*)?$""",
    re.MULTILINE,
)


def manifest_name(text: str) -> str:
    """Return the top-level `name` of a YAML or JSON manifest; raise WaybillError if it has none."""
    name = _json_name(text) if text.lstrip().startswith("{") else _yaml_name(text)
    if not name:
        raise WaybillError("the manifest has no top-level name: add a line as in `name: orders`")
    return name


def _yaml_name(text: str) -> str | None:
    found = NAME_LINE.search(text)
    return None if found is None else next(group for group in found.groups() if group is not None)


def _json_name(text: str) -> str | None:
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise WaybillError(f"the manifest is not valid JSON: {error}") from error
    name = manifest.get("name") if isinstance(manifest, dict) else None
    return name if isinstance(name, str) else None
