"""The classes in Spark's jars, read without starting anything: what extends what."""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZipFile

SPARK = "org/apache/spark/sql"
ABSTRACT = 0x0200 | 0x0400  # an interface, or an abstract class
WIDTHS = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5,
          18: 5, 19: 3, 20: 3}  # fmt: skip
"""Bytes of an entry of the constant pool, by its kind. Text has its length before it."""


class Classes:
    """The classes of Spark's SQL in some jars."""

    def __init__(self, jars: Iterable[Path]) -> None:
        self._above: dict[str, set[str]] = defaultdict(set)
        self._abstract: set[str] = set()
        for jar in jars:
            for data in _files(jar):
                name, above, abstract = _header(data)
                self._above[name] |= above
                if abstract:
                    self._abstract.add(name)

    def below(self, root: str) -> set[str]:
        """All that are made of it and may have instances, with dots."""
        found = {root}
        grown = True
        while grown:
            more = {name for name, above in self._above.items() if above & found} - found
            found |= more
            grown = bool(more)
        return {name.replace("/", ".") for name in found - self._abstract}


def _files(jar: Path) -> Iterator[bytes]:
    with ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith(SPARK) and name.endswith(".class"):
                yield archive.read(name)


def _header(data: bytes) -> tuple[str, set[str], bool]:
    (count,) = struct.unpack_from(">H", data, 8)
    texts: dict[int, str] = {}
    names: dict[int, int] = {}
    at, number = 10, 1
    while number < count:
        kind = data[at]
        if kind == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            texts[number] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if kind == 7:
                (names[number],) = struct.unpack_from(">H", data, at + 1)
            at += WIDTHS[kind]
        number += 2 if kind in (5, 6) else 1  # wide numbers count twice
    flags, this, parent, interfaces = struct.unpack_from(">HHHH", data, at)
    above = (parent, *struct.unpack_from(f">{interfaces}H", data, at + 8))
    return texts[names[this]], {texts[names[i]] for i in above if i}, bool(flags & ABSTRACT)
