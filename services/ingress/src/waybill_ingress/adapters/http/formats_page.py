"""What the API's description says of formats.

Formats of a body each have an example that works for the input of `examples/orders.yaml`. Formats
of an input each have a manifest.
"""

from typing import Final

from waybill_shared.contract.manifest.formats import FORMATS
from waybill_shared.http.examples import JsonObject, example

BODIES: Final = example("ingress/record_bodies")
"""A body in each format, as OpenAPI describes it."""
OF_FORMATS: Final[list[JsonObject]] = example("ingress/format_parameters")["parameters"]
"""Parameters of a query that belong to formats."""
_MANIFEST: Final = """\
version: 1
name: orders
inputs:
  - name: orders
    kafka: {{topic: orders.in}}
    format: {format}
{options}stages:
  - name: load
    inputs: [orders]
    sinks:
      - {{name: out, kafka: {{topic: orders.out}}}}
"""
MANIFESTS: Final[JsonObject] = {
    "required": True,
    "content": {
        "application/yaml": {
            "schema": {"type": "string"},
            "examples": {
                f"format: {name}": {"value": _MANIFEST.format(format=name, options=row.manifest)}
                for name, row in FORMATS.items()
            },
        }
    },
}
