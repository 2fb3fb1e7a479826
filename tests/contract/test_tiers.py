"""What `make test` leaves to `make test-deep` is there."""

import re

import pytest

from tiers import DEEP, TESTS, is_wholly_deep


@pytest.mark.parametrize("file", DEEP)
def test_each_file_of_the_deep_tests_is_there_with_what_is_named(file: str) -> None:
    source = (TESTS / file).read_text()
    names = [text for text in DEEP[file] if text.replace("_", "").isalnum()]
    assert [name for name in names if name not in source] == []


def test_promises_that_only_deep_tests_hold_say_so() -> None:
    """By their links in docs/delivery.md: each test that `make test` leaves out is marked."""
    page = (TESTS.parent / "docs" / "delivery.md").read_text()
    links = re.findall(r"\[(test_\w+)\]\(\.\./tests/([\w/]+\.py)\)( \(deep\))?", page)
    assert links
    wrong = [test for test, file, mark in links if is_wholly_deep(file, test) != bool(mark)]
    assert wrong == []
