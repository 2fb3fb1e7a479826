"""Writes the list of table properties in docs/iceberg.md."""

from waybill_shared.contract.manifest.iceberg_properties import TABLE_PROPERTIES, ValueForm

HEAD = """| value | properties |
|---|---|
"""


def render() -> str:
    """Return the rows: by form of value the names, in the order of the list."""
    return HEAD + "".join(map(_line, dict.fromkeys(TABLE_PROPERTIES.values())))


def _line(form: ValueForm) -> str:
    names = ", ".join(f"`{name}`" for name, each in TABLE_PROPERTIES.items() if each is form)
    return f"| {form.words} | {names} |\n"


if __name__ == "__main__":
    print(render(), end="")
