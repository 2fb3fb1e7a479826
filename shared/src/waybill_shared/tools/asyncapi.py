"""Writes docs/asyncapi.yaml, which describes the events of `waybill.status` to programs of others:
`python -m waybill_shared.tools.asyncapi > docs/asyncapi.yaml`."""

import io
import sys
from typing import Any, Final

from ruamel.yaml import YAML

from waybill_shared.http.asyncapi import document

WIDTH: Final = 100


def render() -> str:
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.width = WIDTH
    out = io.StringIO()
    yaml.dump(document(), out)
    return out.getvalue()


if __name__ == "__main__":
    sys.stdout.write(render())
