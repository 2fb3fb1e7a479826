"""Kafka and the directory in memory answer ingress as the real ones do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from contracts.follower import FollowerContract
from contracts.log import LogContract, TopicsContract
from contracts.replays import ReplayLogContract
from unit.ingress.fakes import NEW_ID, FakeDirectory, FakeKafka
from unit.ingress.graves import FakeReplayLog
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.replays import LetterReplay, ReplayPosition

T = TypeVar("T")


class Fake:
    topic = "orders.in"

    def __init__(self) -> None:
        self._kafka = FakeKafka()
        self.log = self.topics = self._kafka

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return finished(work)

    def delete(self) -> None:
        self._kafka.topic_id = None

    def create_anew(self) -> None:
        self._kafka.topic_id = NEW_ID


class Following:
    def __init__(self) -> None:
        self.directory = self.news = FakeDirectory()

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return finished(work)

    def tell(self, record: PipelineRecord) -> None:
        self.directory.told.append(record)


def finished(work: Callable[[], Awaitable[T]]) -> T:
    async def run() -> T:
        return await work()

    return asyncio.run(run())


@pytest.fixture(name="bench")
def _kafka() -> Fake:
    return Fake()


class TestFakeLog(LogContract):
    """Over `FakeKafka`."""


class TestFakeTopics(TopicsContract):
    """Over `FakeKafka`."""


class Graves:
    uids = ("uid-1", "uid-2")

    def __init__(self) -> None:
        self.log = self.other_log = FakeReplayLog()

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return finished(work)

    def written(self) -> list[tuple[ReplayPosition, LetterReplay]]:
        return self.log.written


class TestFakeReplayLog(ReplayLogContract):
    @pytest.fixture
    def bench(self) -> Graves:
        return Graves()


class TestFakeDirectory(FollowerContract):
    @pytest.fixture
    def bench(self) -> Following:
        return Following()
