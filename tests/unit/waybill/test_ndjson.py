"""Records as lines."""

from dataclasses import dataclass

import pytest

from waybill import Unusable
from waybill.ndjson import Record, encode


def test_dicts_and_lines_become_one_line_each() -> None:
    records: list[Record] = [{"name": "Zoë\nA"}, b'{"id": 1}', b'{"id": 2}\r\n']
    assert encode(records).decode() == '{"name": "Zoë\\nA"}\n{"id": 1}\n{"id": 2}\n'


@dataclass
class Row:
    id: int


@pytest.mark.parametrize("single", [{"id": 1}, b'{"id": 1}', Row(1)])
def test_a_single_record_is_refused_with_the_way_out(single: object) -> None:
    with pytest.raises(TypeError, match="into a list"):
        encode(single)  # type: ignore[arg-type]


@pytest.mark.parametrize("blank", [b"", b" \r\n"])
def test_a_blank_line_is_refused_as_it_would_shift_the_indexes(blank: bytes) -> None:
    with pytest.raises(Unusable, match="record 1 is blank"):
        encode([b"{}", blank])


def test_a_line_break_within_a_line_is_refused() -> None:
    with pytest.raises(Unusable, match="record 0 has a line break"):
        encode([b'{"a":\n1}'])
