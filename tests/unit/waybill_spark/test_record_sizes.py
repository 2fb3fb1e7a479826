"""What a driver expects of the next record, by those that it has met."""

from waybill_spark.driver.reading.sizes import RECORD_BYTES_GUESS, RECORDS_KNOWN_MIN, RecordSizes


def test_a_few_small_records_say_nothing() -> None:
    sizes = RecordSizes()
    sizes.count(records=RECORDS_KNOWN_MIN - 1, largest=10)
    assert sizes.largest == RECORD_BYTES_GUESS
    sizes.count(records=1, largest=20)
    assert sizes.largest == 20


def test_a_large_one_is_never_forgotten() -> None:
    sizes = RecordSizes()
    sizes.count(records=1, largest=2 * RECORD_BYTES_GUESS)
    sizes.count(records=RECORDS_KNOWN_MIN, largest=10)
    assert sizes.largest == 2 * RECORD_BYTES_GUESS
