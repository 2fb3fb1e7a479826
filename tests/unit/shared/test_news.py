"""Many who wait for news share one question, and each hears what was told before it came."""

import asyncio
import threading

import pytest

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.news import News


class FakeFollower:
    """Its topic is asked when a test lets it."""

    def __init__(self) -> None:
        self.caught_up = threading.Event()
        self.asked = 0
        self.late = False
        self.broken = False
        self.let = threading.Semaphore(0)

    def await_now(self, timeout_s: float) -> None:
        self.asked += 1
        assert self.let.acquire(timeout=5)
        if self.broken:
            raise RuntimeError("nobody has thought of this")
        if self.late:
            raise Retryable("not read to its end")


def test_those_that_come_while_it_is_asked_share_the_next_question() -> None:
    follower = FakeFollower()

    async def run() -> list[bool]:
        news = News(follower)
        first = asyncio.create_task(news.catch_up())
        while not follower.asked:
            await asyncio.sleep(0)
        later = [asyncio.create_task(news.catch_up()) for _ in range(100)]
        await asyncio.sleep(0)
        follower.let.release()
        assert await first
        assert not any(each.done() for each in later), "the first question was put before they came"
        follower.let.release()
        return [await each for each in later]

    assert asyncio.run(run()) == [True] * 100
    assert follower.asked == 2


def test_what_comes_too_late_is_no_news_and_the_next_question_is_put_all_the_same() -> None:
    follower = FakeFollower()
    follower.let.release(2)

    async def run() -> tuple[bool, bool]:
        news = News(follower)
        follower.late = True
        late = await news.catch_up()
        follower.late = False
        return late, await news.catch_up()

    assert asyncio.run(run()) == (False, True)


def test_whoever_waits_is_told_of_a_fault_that_nobody_has_thought_of() -> None:
    follower = FakeFollower()
    follower.let.release(2)

    async def run() -> bool:
        news = News(follower)
        follower.broken = True
        with pytest.raises(RuntimeError, match="nobody has thought of this"):
            await news.catch_up()
        follower.broken = False
        return await news.catch_up()

    assert asyncio.run(run())
