"""A read of offsets gives those and no others."""

from collections.abc import Iterable
from typing import cast

import pytest
from confluent_kafka import Consumer

from waybill_shared.kafka import clients
from waybill_shared.kafka.clients import read_ranges


class Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> None:
        return None


class Given:
    """A consumer to which all of `offsets` come, wherever it was told to begin."""

    def __init__(self, offsets: Iterable[int]) -> None:
        self._messages = [Message(offset) for offset in offsets]

    def assign(self, places: object) -> None:
        pass

    def poll(self, timeout_s: float) -> Message | None:
        return self._messages.pop(0) if self._messages else None

    def consume(self, most: int, timeout_s: float) -> list[Message]:
        return []

    def close(self) -> None:
        pass


def test_who_is_sent_back_to_the_beginning_gives_no_older_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by a broker that has lost the others, and does not know the newest records."""
    given = cast(Consumer, Given(range(10)))
    monkeypatch.setattr(clients, "make_consumer", lambda *about, **options: given)
    found = [message.offset() for message in read_ranges("", "t", {0: (6, 9)})]
    assert found == [6, 7, 8]
