"""What a name means after renames."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from builders import make_commit, make_sink, make_stage
from waybill_shared.contract.former_names import (
    all_names,
    find_before,
    find_meant,
    first_name,
    is_meant,
    names_after,
    names_of,
)
from waybill_shared.contract.slots import key_of, key_of_commit, stage_key


@dataclass(frozen=True)
class Thing:
    name: str
    was: tuple[str, ...] = ()


LAKE = Thing("pond", was=("lake", "pool"))


def test_key_is_made_of_the_first_name_and_any_name_means_it() -> None:
    assert first_name(LAKE) == "lake"
    assert first_name(Thing("lake")) == "lake"
    assert names_of(LAKE) == ("pond", "lake", "pool")
    assert is_meant(LAKE, ["pool", "other"])
    assert not is_meant(LAKE, ["other"])
    assert find_meant("pool", [Thing("other"), LAKE]) is LAKE
    assert find_meant("other", [Thing("third")]) is None


def test_present_name_comes_before_a_former_one() -> None:
    other = Thing("lake")
    assert find_meant("lake", [LAKE, other]) is other


def test_only_what_had_another_name_needs_more_than_the_one_that_is_asked_for() -> None:
    assert all_names(["pool", "other"], [LAKE, Thing("other")]) == {
        "pool": frozenset(("pond", "lake", "pool"))
    }


def test_keys_stay_when_names_change() -> None:
    stage, sink = make_stage("enrich"), make_sink("lake")
    renamed = make_stage("polish", was=("enrich",))
    pond = make_sink("pond", was=("lake",))
    assert key_of(renamed, pond) == key_of(stage, sink) == "enrich/lake@1"
    assert stage_key(renamed) == stage_key(stage) == "enrich@1"
    assert key_of_commit(make_commit(stage="polish", sink="pond", key="enrich/lake@1")) == (
        key_of_commit(make_commit(stage="enrich", sink="lake"))
    )


@given(st.lists(st.sampled_from("abcd"), min_size=1))
def test_what_was_renamed_any_number_of_times_is_found_by_each_of_its_names(
    names: list[str],
) -> None:
    thing = Thing("a")
    for name in names:
        renamed = Thing(name, was=names_after(thing, name))
        assert find_before(renamed, [Thing("other"), thing]) is thing
        thing = renamed
    assert first_name(thing) == "a"
    assert {*names_of(thing)} == {"a", *names}
    assert len(thing.was) == len({*thing.was})
