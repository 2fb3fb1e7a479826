"""What a person writes of where to begin."""

import pytest

from waybill_shared.contract.beginnings import Begin, InputOffset, read_beginning, read_time


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("earliest", Begin(word="earliest")),
        ("latest", Begin(word="latest")),
        ("2026-11-01T00:00:00Z", Begin(at=1_793_491_200_000)),
        ("1969-12-31T00:00:00Z", Begin(at=0)),
        ("7 days ago", Begin(ago_ms=604_800_000)),
        ("1 week ago", Begin(ago_ms=604_800_000)),
        ("30 minutes ago", Begin(ago_ms=1_800_000)),
        ("1 hours ago", Begin(ago_ms=3_600_000)),
        ("2026-11-01T01:00:00.5+01:00", Begin(at=1_793_491_200_500)),
        (
            "a.b-c_d[0]=12, e[3]=0",
            Begin(
                offsets=(
                    InputOffset(topic="a.b-c_d", partition=0, offset=12),
                    InputOffset(topic="e", partition=3, offset=0),
                )
            ),
        ),
    ],
)
def test_each_form_is_read(text: str, begin: Begin) -> None:
    assert read_beginning(text) == begin


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("noon", "is none of"),
        ("", "is none of"),
        ("a[0]=1,b", "is none of"),
        ("a[0]=-1", "is none of"),
        ("7 days", "is none of"),
        ("days ago", "is none of"),
        ("7 fortnights ago", "is none of"),
        ("-7 days ago", "is none of"),
        ("1000000 days ago", "is none of"),
        ("2026-11-01T00:00:00", "has no zone"),
        ("a[0]=1,a[0]=2", "named twice"),
    ],
)
def test_anything_else_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_beginning(text)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("earliest", None),
        ("a[0]=1", None),
        ("2026-11-01T00:00:00Z", 1_793_491_200_000),
        ("2 minutes ago", 880_000),
        ("7 days ago", 0),
    ],
)
def test_a_time_ago_is_before_the_present_one_and_never_before_all_time(
    text: str, since: int | None
) -> None:
    assert read_beginning(text).since(1_000_000) == since


@pytest.mark.parametrize("text", ["a[0]=1", "noon"])
def test_what_is_about_no_time_says_so_without_offsets(text: str) -> None:
    with pytest.raises(ValueError, match="is none of") as refused:
        read_time(text)
    assert "orders.in[0]" not in str(refused.value)
