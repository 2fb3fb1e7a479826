"""What `make test` leaves to `make test-deep` is there."""

import pytest

from tiers import DEEP, TESTS


@pytest.mark.parametrize("file", DEEP)
def test_each_file_of_the_deep_tests_is_there_with_what_is_named(file: str) -> None:
    source = (TESTS / file).read_text()
    names = [text for text in DEEP[file] if text.replace("_", "").isalnum()]
    assert [name for name in names if name not in source] == []
