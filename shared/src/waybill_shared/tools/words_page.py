"""Writes docs/words.md from the words of Waybill."""

from inspect import cleandoc
from typing import Final

from waybill_shared.contract import run_words, words
from waybill_shared.contract.word import Word

INTRODUCTION: Final = """# Words

<!-- Made by `python -m waybill_shared.tools.words_page > docs/words.md`. Change
     `waybill_shared.contract.words` or `run_words`, not this file. -->

The words that Waybill uses in its answers, and what they mean. Programs can compare these words:
they do not change. New words may be added, so a program must not fail when it meets a word that it
does not know. The phases of a pipeline are in [lifecycle.md](lifecycle.md), metrics in
[metrics.md](metrics.md).
"""


MODULES: Final = (words, run_words)


def render() -> str:
    """Render the complete document: a chapter for each kind of word, module by module."""
    names = [module.__name__ for module in MODULES]
    kinds = sorted(Word.__subclasses__(), key=lambda kind: names.index(kind.__module__))
    return "\n".join([INTRODUCTION, *map(_chapter, kinds)])


def _chapter(kind: type[Word]) -> str:
    title, _, where = cleandoc(kind.__doc__ or "").partition(".\n\n")
    rows = [f"| `{word}` | {word.meaning} |" for word in kind]
    head = [f"## {title}", "", *where.splitlines(), "", "| word | meaning |", "|---|---|"]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    print(render(), end="")
