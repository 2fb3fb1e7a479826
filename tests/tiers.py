"""The tiers of tests: what each may take, in which order they run, and how workers share them.

`contracts` is no tier: it holds one suite per port, which `unit` runs on its fakes, `sim` on its
stand-ins and `integration` on the real thing. `documents` holds schemas, documents and examples.
"""

from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from deep_edges import DEEP

TESTS = Path(__file__).parent
OWN_STACKS = ("integration/local_stack", "e2e/existing_clusters")
TIERS = ("unit", "documents", "integration", "e2e", "sim")
BUDGET_S = {"unit": 180, "documents": 65, "integration": 620, "e2e": 500, "sim": 85}
"""Seconds that the tests of a tier take in all, on 2 quiet cores with 2 workers, which share them.
With the set-up this is a quarter of an hour. A tier that takes a fifth more is warned of at the end
of a run."""


class ByFile(LoadScopeScheduling):
    """Files in the order of collection, each to one worker, because its tests share what they made.

    Scenarios of the simulation share nothing: one by one, and last, they fill up the workers.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if tier(nodeid) == "sim" else nodeid.partition("::")[0]


def tier(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).parts[1]


def file_of(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()


def is_deep(item: pytest.Item) -> bool:
    return any(text in item.name for text in DEEP.get(file_of(item), ()))


def is_wholly_deep(file: str, test: str) -> bool:
    """Return True if each case of the function `test` of `file` is left to `make test-deep`."""
    return any(text in test for text in DEEP.get(file, ()))


def has_own_stack(item: pytest.Item) -> bool:
    return any(item.path.is_relative_to(TESTS / folder) for folder in OWN_STACKS)


def needs_stack(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "stack" in names or ("servers" in names and not item.config.getoption("containers"))


def place(item: pytest.Item) -> tuple[bool, int]:
    """First what starts stacks of its own, so that each worker has one at a time."""
    return not has_own_stack(item), TIERS.index(item.path.relative_to(TESTS).parts[0])
