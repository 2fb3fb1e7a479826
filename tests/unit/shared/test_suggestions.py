import pytest

from waybill_shared.contract.suggestions import LISTED_MAX, hint_of_names


@pytest.mark.parametrize(
    ("wanted", "known", "expected"),
    [
        ("ordes", ["orders", "pay"], "did you mean 'orders'? known pipelines: orders, pay"),
        ("zzz", ["orders", "pay"], "known pipelines: orders, pay"),
        ("orders", [], ""),
    ],
)
def test_hint_names_the_likeliest_first(wanted: str, known: list[str], expected: str) -> None:
    assert hint_of_names(wanted, known, "known pipelines") == expected


def test_hint_stays_one_line_among_many_names() -> None:
    known = [f"p{number:03}" for number in range(LISTED_MAX + 5)]
    assert hint_of_names("zzz", known, "known").endswith(f"p{LISTED_MAX - 1:03}, and 5 more")
