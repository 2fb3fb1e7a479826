"""Writes the table of sink kinds in docs/manifest.md."""

from waybill_shared.contract.manifest.sinks import KINDS, SinkKind

HEAD = """| kind | keys | writes | a row is there | between batches |
|---|---|---|---|---|
"""


def render() -> str:
    return HEAD + "".join(_line(name, kind) for name, kind in KINDS.items())


def _line(name: str, kind: SinkKind) -> str:
    keys = ", ".join(f"`{field.alias or name}`" for name, field in kind.model.model_fields.items())
    pause = f"{kind.interval_ms / 1000:g} seconds" if kind.interval_ms else "no pause"
    return f"| `{name}` | {keys} | {kind.writes} | {kind.guarantee.meaning} | {pause} |\n"


if __name__ == "__main__":
    print(render(), end="")
