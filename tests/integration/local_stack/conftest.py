"""Fixtures of the local stack's integration tests: a stack of one's own, and a shared one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.local_stack.place import Place, make_place
from waybill_local import stack


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """For a stack of this test alone."""
    made = make_place(tmp_path, monkeypatch)
    yield made
    stack.down(tmp_path, made.reports.append)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A running stack that the tests of one module share."""
    folder = tmp_path_factory.mktemp("stack")
    with pytest.MonkeyPatch.context() as patch:
        shared = make_place(folder, patch)
        shared.up()
        yield shared
        stack.down(folder, shared.reports.append)
