"""Writes docs/words.md from the words of Waybill."""

from inspect import cleandoc
from typing import Final

from waybill_shared.contract.words import Word

INTRODUCTION: Final = """# Words

<!-- Made by `python -m waybill_shared.tools.words_page > docs/words.md`. Change
     `waybill_shared.contract.words`, not this file. -->

What Waybill says in one word, and what it means by it. Programs may compare these words: they
stay as they are. New ones may come; do not fail at a word that you do not know. The phases of a
pipeline are in [lifecycle.md](lifecycle.md), metrics in [metrics.md](metrics.md).
"""


def render() -> str:
    """The whole document: a chapter for each kind of word."""
    return "\n".join([INTRODUCTION, *map(_chapter, Word.__subclasses__())])


def _chapter(words: type[Word]) -> str:
    title, _, where = cleandoc(words.__doc__ or "").partition(".\n\n")
    rows = [f"| `{word}` | {word.meaning} |" for word in words]
    head = [f"## {title}", "", *where.splitlines(), "", "| word | meaning |", "|---|---|"]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    print(render(), end="")
