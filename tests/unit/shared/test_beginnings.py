"""What a person writes of where to begin."""

import pytest

from waybill_shared.contract.beginnings import Begin, read_beginning
from waybill_shared.contract.commands import InputOffset


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("earliest", Begin(word="earliest")),
        ("latest", Begin(word="latest")),
        ("2026-11-01T00:00:00Z", Begin(at=1_793_491_200_000)),
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
        ("2026-11-01T00:00:00", "has no zone"),
        ("a[0]=1,a[0]=2", "named twice"),
    ],
)
def test_anything_else_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_beginning(text)
