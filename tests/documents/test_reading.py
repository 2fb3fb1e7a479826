"""The pages that newcomers read first have short sentences, and tables that fit on a screen."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
WORDS_MAX = 30
CELL_CHARACTERS_MAX = 160
PAGES = ("README.md", "CHANGELOG.md", "docs/first-steps.md", "docs/manifest.md", "docs/changing.md")
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +", re.MULTILINE)
PRIVATE = frozenset(
    YAML(typ="safe").load((ROOT / "tests/plain_words.yaml").read_text("utf-8"))["private"].split()
)
PROSE = ("*.md", "docs/*.md", "services/*/README.md", "infra/*/README.md", "[bcs]*/README.md")
NO_PROSE = re.compile(
    r"```.*?```|`[^`\n]*`|\]\([^)]*\)|^\[\^[^\]]*\]:.*?(?=\n\n|\n\[|\Z)|<!--.*?-->|\[\^?[\w-]+\]",
    re.MULTILINE | re.DOTALL,
)  # code, targets of links, footnotes and comments
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
PRIVATE_OF_100_MAX = 0.3
BREAK = re.compile(r"\n\s*\n|(?<!\\)\||(?<=[.!?])[\"')*]*\s+")


def text_of(page: str) -> str:
    return FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))


def rows_of(page: str) -> list[str]:
    return [line for line in text_of(page).splitlines() if line.startswith("|")]


def sentences(text: str) -> list[str]:
    """Return what a point, a cell, an item or an empty line ends. A piece of code is one word."""
    plain = ITEM.sub("\n\n", LINK.sub(r"\1", CODE.sub("code", text)))
    return [" ".join(sentence.split()) for sentence in BREAK.split(plain)]


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_is_long(page: str) -> None:
    long = [each for each in sentences(text_of(page)) if len(each.split()) > WORDS_MAX]
    assert not long, f"more than {WORDS_MAX} words"


def test_no_cell_of_the_readme_is_long() -> None:
    cells = [cell.strip() for row in rows_of("README.md") for cell in row.split("|")]
    assert [cell for cell in cells if len(cell) > CELL_CHARACTERS_MAX] == []


@pytest.mark.parametrize("pattern", PROSE)
def test_pages_have_no_word_with_a_private_sense(pattern: str) -> None:
    for page in ROOT.glob(pattern):
        words = re.findall(r"[A-Za-z]+", NO_PROSE.sub("", page.read_text(encoding="utf-8")))
        assert {word for word in words if word.lower() in PRIVATE} == set(), page.name


def test_texts_of_the_console_have_no_word_with_a_private_sense() -> None:
    for module in ROOT.glob("console/*.js"):
        code = COMMENT.sub("", module.read_text(encoding="utf-8"))
        for plain, template in TEXT.findall(code):
            text = re.sub(r"\$\{[^}]*\}", " ", plain or template).strip()
            words = {word.lower() for word in re.findall(r"[A-Za-z]+", text)}
            assert " " not in text or words & PRIVATE == set(), module.name  # one word is a key


def test_code_of_the_console_has_few_words_with_a_private_sense() -> None:
    texts = [module.read_text(encoding="utf-8") for module in ROOT.glob("console/*.js")]
    words = [word.lower() for text in texts for word in NAME_PARTS.findall(text)]
    private = [word for word in words if word in PRIVATE]
    assert 100 * len(private) / len(words) <= PRIVATE_OF_100_MAX


def test_a_sentence_ends_where_a_reader_stops() -> None:
    found = sentences("One `a. b` c. Two\nlines: d!\n\n- three\n- four | five [six](seven.md).")
    assert [each for each in found if each] == [
        "One code c.", "Two lines: d!", "three", "four", "five six.",
    ]  # fmt: skip
