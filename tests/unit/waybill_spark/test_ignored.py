"""What a driver remembers of fields that are no columns."""

from waybill_shared.contract.driver_news import IgnoredFields
from waybill_spark.driver.reading.ignored import NAMES_MAX, Ignored, unite


def test_records_are_counted_and_each_warning_is_kept_once() -> None:
    ignored = Ignored()
    ignored.count_unknown("readings", 2, ["a", "b"])
    ignored.count_unknown("readings", 3, ["b", "c"])
    ignored.count_unknown("sites", 0, [])
    assert ignored.inputs() == (
        IgnoredFields(input="readings", records=5, warnings=("a", "b", "c")),
    )


def test_records_with_ever_new_fields_fill_no_memory() -> None:
    ignored = Ignored()
    for number in range(1_000):
        ignored.count_unknown("readings", 1, [f"field {number}"])
    (found,) = ignored.inputs()
    assert found.records == 1_000
    assert found.warnings == tuple(f"field {number}" for number in range(NAMES_MAX))


def test_records_that_rules_drop_or_warn_of_are_counted_by_rule() -> None:
    ignored = Ignored()
    ignored.count_dropped("readings", "malformed", 2)
    ignored.count_dropped("readings", "malformed", 3)
    ignored.count_dropped("readings", "positive", 1)
    ignored.count_warned("readings", "known", 4)
    ignored.count_unknown("readings", 1, ["a"])
    (found,) = ignored.inputs()
    assert (found.records, found.warnings) == (1, ("a",))
    assert found.dropped == {"malformed": 5, "positive": 1}
    assert found.warned == {"known": 4}


def test_an_input_that_two_stages_read_counts_once() -> None:
    ahead, behind = Ignored(), Ignored()
    ahead.count_unknown("readings", 5, ["a"])
    behind.count_unknown("readings", 2, ["a"])
    behind.count_unknown("sites", 1, ["b"])
    ahead.count_dropped("sites", "malformed", 1)
    ahead.count_warned("sites", "known", 1)
    for stages in ([ahead, behind], [behind, ahead]):
        found = {each.input: each for each in unite(stages)}
        assert {name: each.records for name, each in found.items()} == {"readings": 5, "sites": 0}
        assert found["sites"].dropped == {"malformed": 1}
