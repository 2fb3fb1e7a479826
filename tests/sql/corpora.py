"""The queries of `attacks.sql` and `good.sql`, each with what must be said of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Query:
    sql: str
    says: str
    """Empty where nothing is to be said."""

    def __str__(self) -> str:
        return self.sql


def attacks() -> list[Query]:
    return [*_read("attacks.sql")]


def good() -> list[Query]:
    return [*_read("good.sql")]


def _read(name: str) -> Iterator[Query]:
    says = ""
    for line in (FOLDER / name).read_text().splitlines():
        if not line:
            says = ""
        elif line.startswith("-- says: "):
            says = line.removeprefix("-- says: ")
        elif not line.startswith("--"):
            yield Query(line, says)
