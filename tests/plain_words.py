"""Measures how plain the words of the source are: four figures that may fall and never rise.

`make check` runs it. With `--list` it also prints each place that counts, to be mended.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = ("shared/src", "spark/src", "services", "client/src", "infra/local/src")
LIMITS: Final = {
    "docstrings of functions that begin without a verb, of 100": 0.5,
    "words with a private sense, of 100": 0.2,
    "functions named by a participle, of 100": 1.6,
    "docstrings of classes and properties that begin with no noun, of 100": 2.5,
}
SLACK: Final = 0.5
"""A figure that has fallen by more gets a new limit, so that it stays there."""

WORDS: Final = YAML(typ="safe").load(Path(__file__).with_suffix(".yaml"))
VERBS: Final = frozenset(WORDS["verbs"].split())
"""Verbs in the imperative that docstrings begin with."""

PRIVATE: Final = frozenset(WORDS["private"].split())
"""Words that have a sense of their own here, where the trade has a plainer one."""

QUESTIONS: Final = frozenset(WORDS["questions"].split())
"""Words with which a docstring asks what it is to name."""

IRREGULAR: Final = frozenset(WORDS["irregular"].split())
NO_PARTICIPLE: Final = frozenset(WORDS["no_participle"].split())
WORD: Final = re.compile(r"[A-Za-z]+")
PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
PROPERTIES: Final = frozenset({"property", "cached_property", "setter", "computed_field"})
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Count:
    """How many there are, and which of them count."""

    total: int = 0
    found: list[str] = field(default_factory=list)

    def add(self, place: str | None) -> None:
        self.total += 1
        if place is not None:
            self.found.append(place)

    @property
    def share(self) -> float:
        return 100 * len(self.found) / max(1, self.total)


def measure(files: list[Path]) -> dict[str, Count]:
    """Count the figures over `files`, in the order of LIMITS."""
    counts = {name: Count() for name in LIMITS}
    verbs, words, participles, nouns = counts.values()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, FunctionNode) and not _is_property(node):
                _count_function(node, where, verbs, participles)
            elif isinstance(node, FunctionNode | ast.ClassDef):
                _count_noun(node, where, nouns)
            for text in _texts(node):
                for word in text:
                    words.add(f"{where} {word}" if word.lower() in PRIVATE else None)
    return counts


def sources() -> list[Path]:
    found = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if "build" not in path.parts)


def problems(counts: dict[str, Count]) -> Iterator[str]:
    """Yield what is to be done about each figure that has risen, or has fallen for good."""
    for name, count in counts.items():
        limit = LIMITS[name]
        share = round(count.share, 2)
        if share > limit:
            yield f"{name}: {share}, at most {limit}; `--list` names each"
        elif share < limit - SLACK:
            yield f"{name}: {share}; lower its limit of {limit} in {Path(__file__).name}"


def _count_function(node: FunctionNode, where: str, verbs: Count, participles: Count) -> None:
    text = ast.get_docstring(node)
    if text:
        first = (WORD.match(text.strip()) or [""])[0]
        verbs.add(
            None if first.lower() in VERBS else f"{where} {node.name}: {text.splitlines()[0]}"
        )
    if not node.name.startswith("__"):
        first = node.name.strip("_").partition("_")[0]
        participles.add(f"{where} {node.name}" if _is_participle(first) else None)


def _count_noun(node: FunctionNode | ast.ClassDef, where: str, nouns: Count) -> None:
    text = ast.get_docstring(node)
    if text:
        asks = text.split()[0] in QUESTIONS
        nouns.add(f"{where} {node.name}: {text.splitlines()[0]}" if asks else None)


def _is_participle(word: str) -> bool:
    if word in NO_PARTICIPLE:
        return False
    return word in IRREGULAR or (len(word) > 4 and word.endswith(("ed", "ing")))


def _is_property(node: FunctionNode) -> bool:
    names = {
        part.id if isinstance(part, ast.Name) else part.attr
        for decorator in node.decorator_list
        for part in ast.walk(decorator)
        if isinstance(part, ast.Name | ast.Attribute)
    }
    return bool(names & PROPERTIES)


def _texts(node: ast.AST) -> Iterator[list[str]]:
    """Yield the words of a name that this node gives, of a docstring, or of a message."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield PARTS.findall(name)
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            yield PARTS.findall(name)
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield PARTS.findall(name)
        case ast.Constant(value=str() as text) if " " in text:
            yield WORD.findall(text)


def main() -> int:
    """Print the figures, and with `--list` what they count; 1 if one is over its limit."""
    counts = measure(sources())
    for name, count in counts.items():
        print(f"{count.share:6.2f} {name} ({len(count.found)} of {count.total})")
        if "--list" in sys.argv:
            print(*(f"       {place}" for place in count.found), sep="\n")
    found = list(problems(counts))
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
