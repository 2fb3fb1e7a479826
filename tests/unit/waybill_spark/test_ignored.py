"""What a driver remembers of fields that are no columns."""

from waybill_shared.contract.driver_news import IgnoredFields
from waybill_spark.driver.reading.ignored import NAMES_MAX, Ignored, unite


def test_records_are_counted_and_each_warning_is_kept_once() -> None:
    ignored = Ignored()
    ignored.met("readings", 2, ["a", "b"])
    ignored.met("readings", 3, ["b", "c"])
    ignored.met("sites", 0, [])
    assert ignored.inputs() == (
        IgnoredFields(input="readings", records=5, warnings=("a", "b", "c")),
    )


def test_records_with_ever_new_fields_fill_no_memory() -> None:
    ignored = Ignored()
    for number in range(1_000):
        ignored.met("readings", 1, [f"field {number}"])
    (found,) = ignored.inputs()
    assert found.records == 1_000
    assert found.warnings == tuple(f"field {number}" for number in range(NAMES_MAX))


def test_records_that_rules_drop_or_warn_of_are_counted_by_rule() -> None:
    ignored = Ignored()
    ignored.dropped("readings", "malformed", 2)
    ignored.dropped("readings", "malformed", 3)
    ignored.dropped("readings", "positive", 1)
    ignored.warned("readings", "known", 4)
    ignored.met("readings", 1, ["a"])
    (found,) = ignored.inputs()
    assert (found.records, found.warnings) == (1, ("a",))
    assert found.dropped == {"malformed": 5, "positive": 1}
    assert found.warned == {"known": 4}


def test_an_input_that_two_stages_read_counts_once() -> None:
    ahead, behind = Ignored(), Ignored()
    ahead.met("readings", 5, ["a"])
    behind.met("readings", 2, ["a"])
    behind.met("sites", 1, ["b"])
    ahead.dropped("sites", "malformed", 1)
    ahead.warned("sites", "known", 1)
    for stages in ([ahead, behind], [behind, ahead]):
        found = {each.input: each for each in unite(stages)}
        assert {name: each.records for name, each in found.items()} == {"readings": 5, "sites": 0}
        assert found["sites"].dropped == {"malformed": 1}
