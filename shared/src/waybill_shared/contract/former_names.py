"""What a name means: a stage or a sink keeps its life under another name. Pure.

`was` of each has the names before the present one, the first one first. Keys are made of the first
name, so a rename moves no fence, folder or slot. A former name means the same as before wherever
somebody asks by name; so it means nothing else while the one that had it exists.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Protocol, TypeVar


class Named(Protocol):
    """A thing that may have had other names."""

    @property
    def name(self) -> str: ...

    @property
    def was(self) -> Sequence[str]: ...


T = TypeVar("T", bound=Named)


def first_name(named: Named) -> str:
    """Return the name that keys are made of."""
    return named.was[0] if named.was else named.name


def names_of(named: Named) -> tuple[str, ...]:
    """Return its present name and all former ones."""
    return (named.name, *named.was)


def is_meant(named: Named, names: Container[str]) -> bool:
    """Return True if one of these names means it, now or before."""
    return any(name in names for name in names_of(named))


def all_names(asked: Iterable[str], among: Iterable[Named]) -> dict[str, frozenset[str]]:
    """Return all names of what is asked for, by the name that is asked for; only of what has had
    another one.
    """
    renamed = [each for each in among if each.was]
    found = ((name, each) for name in asked for each in renamed if is_meant(each, (name,)))
    return {name: frozenset(names_of(each)) for name, each in found}


def names_after(named: Named, name: str) -> tuple[str, ...]:
    """Return the former names of what is called `name` from now on. A name that it had before and
    has again is former all the same if it is the first one: keys are made of it.
    """
    if name == named.name:
        return tuple(named.was)
    first, *others = (*named.was, named.name)
    return (first, *(each for each in dict.fromkeys(others) if each not in (first, name)))


def find_before(now: Named, before: Iterable[T]) -> T | None:
    """Return what `now` was before a change; None if it is new. Names of others are never its."""
    return next((each for each in before if is_meant(now, (each.name,))), None)


def find_meant(name: str, among: Iterable[T]) -> T | None:
    """Return what is called so, else what was called so before."""
    known = tuple(among)
    now = (each for each in known if each.name == name)
    return next(now, next((each for each in known if name in each.was), None))
