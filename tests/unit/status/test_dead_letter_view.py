"""A record of a dead-letter topic, as it is told; and those that are none of a pipeline's."""

import pytest

from builders import make_sink, make_stage
from unit.status.letters import TOPIC, letter, raw
from unit.status.slots import UID
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import LetterId
from waybill_status.core.dead_letters.dead_letter_view import (
    ALL,
    CHARACTERS_MAX,
    DeadRecord,
    HeaderText,
    LetterFilter,
    LetterOwner,
    listed,
    whole,
)
from waybill_status.core.outcomes.dead_letters import ReplayedAs

OWNER = LetterOwner(uid=UID)
ID = LetterId(topic=TOPIC, partition=0, offset=3, source=41)


def test_a_record_is_told_with_what_its_headers_say() -> None:
    assert listed(raw(), OWNER, ALL) == letter()


def test_a_sink_is_called_by_its_name() -> None:
    told = listed(raw(told={named.SINK: "enrich/lake@2", named.RULE: None}), OWNER, ALL)
    assert told is not None
    assert (told.sink, told.rule) == ("lake", None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LetterFilter(reason="violated"), True),
        (LetterFilter(reason="malformed"), False),
        (LetterFilter(stage="enrich"), True),
        (LetterFilter(stage="load"), False),
        (LetterFilter(since=1_000), True),
        (LetterFilter(since=1_001), False),
    ],
)
def test_what_is_not_wanted_is_not_told(wanted: LetterFilter, found: bool) -> None:
    assert (listed(raw(), OWNER, wanted) is not None) == found


@pytest.mark.parametrize(
    "record",
    [
        raw(told={named.UID: "another"}),
        raw(told={named.PARTITION: "one"}),
        raw(told={named.OFFSET: "²"}),
        raw(told={named.REASON: None}),
    ],
)
def test_what_is_no_dead_letter_of_the_pipeline_is_not_told(record: DeadRecord) -> None:
    assert listed(record, OWNER, ALL) is None
    assert whole(record, ID, OWNER) is None


@pytest.mark.parametrize(
    ("value", "text", "truncated"),
    [
        (None, None, False),
        (b"", "", False),
        ("é€😀".encode(), "é€😀", False),
        (b"a\xff", "a\ufffd", True),
        (b"x" * CHARACTERS_MAX, "x" * CHARACTERS_MAX, False),
        (b"x" * (CHARACTERS_MAX + 1), "x" * CHARACTERS_MAX, True),
        ("😀".encode() * 2_000, "😀" * CHARACTERS_MAX, True),
        ("a" + "€" * 5_000, "a" + "€" * (CHARACTERS_MAX - 1), True),
    ],
)
def test_in_a_list_long_values_are_shortened(
    value: bytes | str | None, text: str | None, truncated: bool
) -> None:
    content = value.encode() if isinstance(value, str) else value
    told = listed(raw(value=content), OWNER, ALL)
    assert told is not None
    assert (told.value, told.truncated) == (text, truncated)
    told = listed(raw(key=content), OWNER, ALL)
    assert told is not None
    assert (told.key, told.truncated) == (text, truncated)


def test_alone_it_is_told_whole() -> None:
    own = (("a", b"1"), ("b", None), ("c", b"\xff"))
    told = whole(raw(key=b"\x00\xff", value=b"x" * 5_000, own=own), ID, OWNER)
    assert told is not None
    assert (told.key, told.key_base64) == (None, "AP8=")
    assert (told.value, told.value_base64) == ("x" * 5_000, None)
    assert told.headers == (
        HeaderText(name="a", value="1", value_base64=None),
        HeaderText(name="b", value=None, value_base64=None),
        HeaderText(name="c", value=None, value_base64="/w=="),
    )
    assert (told.error, told.batch) == ("violated", "7f1a:3")


def test_alone_it_says_which_sinks_lack_it() -> None:
    stages = (make_stage(sinks=(make_sink("lake"), make_sink("late", since=9))),)
    owner = LetterOwner(uid=UID, stages=stages)
    told = whole(raw(told={named.GENERATION: "2"}), ID, owner)
    assert told is not None
    assert told.lacking == ("lake",)
    told = whole(raw(told={named.SINK: "enrich/gone@1"}), ID, owner)
    assert told is not None
    assert told.lacking == ()


def test_an_id_means_one_record_also_when_its_topic_was_created_again() -> None:
    other = LetterId(topic=TOPIC, partition=0, offset=3, source=42)
    assert whole(raw(), other, OWNER) is None


def test_it_says_why_it_cannot_be_replayed_and_where_it_was() -> None:
    at = ReplayedAs(topic="replays", partition=3, offset=40, edited=True)
    owner = LetterOwner(
        uid=UID,
        obstacle=lambda facts: f"{facts[named.STAGE]} is gone",
        replays={str(ID): at}.get,
    )
    for told in (listed(raw(), owner, ALL), whole(raw(), ID, owner)):
        assert told is not None
        assert (told.not_replayable, told.replayed_as) == ("enrich is gone", at)
    other = listed(raw(4), owner, ALL)
    assert other is not None
    assert other.replayed_as is None
