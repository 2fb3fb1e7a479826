"""Reads a manifest: the way from its text to an `AppliedManifest`, and the only place that goes it.

`read_manifest` does these steps in this order. Each step raises UserError with all the problems
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

Ingress calls it once for each text that comes in. All others get the `AppliedManifest`. Problems
that are found later (by Spark, by a sink) have a path only; `AppliedManifest.place` adds the
position.
"""

import json

from pydantic import ValidationError

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.checks import find_problems
from waybill_shared.contract.manifest.document import paths_of
from waybill_shared.contract.manifest.form import find_form_problems
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.yaml_source import read_yaml


def read_manifest(text: str, *, reserved: str | None = None) -> AppliedManifest:
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
    applied = AppliedManifest(
        native=json.dumps(document.tree, sort_keys=True, separators=(",", ":")),
        source=text,
        places=tuple(n for path in paths_of(document.tree) for n in document.marks[path]),
    )
    return applied.with_warnings(manifest.warnings())
