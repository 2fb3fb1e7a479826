"""Writes docs/other-systems.md from the words of other systems."""

from typing import Final

from waybill_shared.contract.manifest.foreign_words import FOREIGN_WORDS, Foreign

INTRODUCTION: Final = """\
# Words of other systems

<!-- Made by `python -m waybill_shared.tools.foreign_page > docs/other-systems.md`. Change
     `waybill_shared.contract.manifest.foreign_words`, not this file. -->

Who comes from Flink, Arroyo, Feldera, Kafka Connect, dbt, Flare or Spark writes words that a
manifest does not have. `waybill check`, `apply`, `convert` and `POST /v1/validate` refuse them with
line and column, and say what to do instead. This is the list. A word that is accepted without
effect gives a warning.

| word | where | why it is not accepted | instead |
|---|---|---|---|
"""


def render() -> str:
    """Return the whole document: a line for each row of the table."""
    return "".join([INTRODUCTION, *map(_line, FOREIGN_WORDS)])


def _line(row: Foreign) -> str:
    words = ", ".join(f"`{word}`" for word in row.words)
    spots = ", ".join(row.spots)
    why = f"accepted without effect: {row.why}" if row.ignored else row.why
    return f"| {words} | {spots} | {why} | {row.way} |\n"


if __name__ == "__main__":
    print(render(), end="")
