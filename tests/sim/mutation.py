"""A guard taken out of the product, and the invariant that must miss it."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from sim.world import Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    name: str
    invariant: str
    instead: Mapping[str, Any]
    only: tuple[str, ...] = ()
    rates: Rates | None = None
    found_by: int = 0
    """A seed with which the invariant is broken: others are tried only where it no longer is."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for target, replacement in self.instead.items():
                stack.enter_context(patch(target, replacement))
            yield

    def __str__(self) -> str:
        return f"{self.invariant}-{self.name.replace(' ', '-')}"
