"""What stands behind the headers of a dead record is found again, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import (
    MAY_LACK,
    NAMES,
    Headers,
    LetterId,
    place_of,
    split_headers,
    with_facts,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NAME = st.sampled_from(NAMES) | st.sampled_from(["waybill-replay-of", "trace", "waybill"])
OWN = st.lists(st.tuples(NAME, st.none() | st.binary(max_size=5)), max_size=20).map(tuple)


@st.composite
def sayings(draw: st.DrawFn) -> dict[str, str | None]:
    return {name: draw(st.none() | TEXT if name in MAY_LACK else TEXT) for name in NAMES}


@given(OWN, sayings())
def test_own_headers_and_what_was_told_come_back(own: Headers, told: dict[str, str | None]) -> None:
    """Whatever its own are called, how often, and without a value: as after an earlier death."""
    found = split_headers(with_facts(own, told))
    assert found is not None
    assert found.own == own
    assert found.facts == {name: text for name, text in told.items() if text is not None}


@given(OWN)
def test_record_that_nobody_buried_has_nothing_told(own: Headers) -> None:
    complete = {name for name, _ in own} >= {*NAMES} - MAY_LACK
    assert complete or split_headers(own) is None


def test_header_of_ours_without_a_value_is_not_ours() -> None:
    told = dict.fromkeys(NAMES, "x")
    headers = with_facts((), told)
    assert split_headers((*headers[:-1], (named.AT, None))) is None
    assert split_headers((*headers, ("behind", b""))) is None


@given(
    st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**63 - 1),
)
def test_id_names_its_place(topic: str, partition: int, offset: int, source: int) -> None:
    place = LetterId(topic=topic, partition=partition, offset=offset, source=source)
    assert place_of(str(place)) == place


@given(st.text(max_size=30))
def test_text_that_names_a_place_is_its_only_id(text: str) -> None:
    place = place_of(text)
    assert place is None or str(place) == text
