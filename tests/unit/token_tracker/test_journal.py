"""The journal in memory keeps the rules of the one in Kafka."""

import pytest

from contracts.journal import JournalContract
from unit.token_tracker.fakes import FakeJournal


class Fake:
    partition = 0
    uids = ("uid-1", "uid-2")

    def __init__(self) -> None:
        self.journal = FakeJournal()

    def tell(self, count: int) -> None:
        self.journal.ends[self.partition] = self.journal.end(self.partition) + count

    def saved(self) -> tuple[dict[str, str], int]:
        slots = {key: snapshot.slot for key, snapshot in self.journal.snapshots.items()}
        return slots, self.journal.positions.get(self.partition, 0)

    def replace(self) -> None:
        self.journal.replaced = True

    def create_anew(self) -> None:
        self.journal.now_id = "anew"


class TestFakeJournal(JournalContract):
    @pytest.fixture
    def bench(self) -> Fake:
        return Fake()
