"""A key stands where Kafka's own clients put it."""

import pytest

from waybill_shared.kafka.partitioner import partition_of

# From the tests of Kafka's own clients: what murmur2 makes of these, as a signed number.
KNOWN = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize("key", KNOWN)
@pytest.mark.parametrize("partitions", [1, 8, 50, 2**31])
def test_key_stands_where_java_puts_it(key: str, partitions: int) -> None:
    assert partition_of(key, partitions) == (KNOWN[key] & 0x7FFFFFFF) % partitions
