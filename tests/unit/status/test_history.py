"""Who reads the history of a pipeline gets each event once, over any restart; a gap is named."""

import asyncio
import random
from collections.abc import Callable

import pytest

from unit.status.coroutines import in_a_loop
from unit.status.histories import MINE, PARTITIONS, LifeTopic, a_life, compare, receive
from unit.status.slots import KEY
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.words import HistoryGap
from waybill_shared.kafka.follower import FollowedTopic
from waybill_status.app.pipelines import events as memory
from waybill_status.app.pipelines import history as module
from waybill_status.app.pipelines.history import History
from waybill_status.core.pipelines.history import HistoryPage

NO_IDS = ["x", "1.2", "a.b.1", "topic.1.", "topic.1.-1", "topic.1.²", "a b.1.1", f"t.1.{'9' * 30}"]


async def walk(
    process: Callable[[], History], *, after: str = "", limit: Callable[[], int]
) -> list[HistoryPage]:
    """All pages, each from a process of its own."""
    pages = [await process().page(KEY, limit=limit(), after=after)]
    while (following := pages[-1].next) is not None:
        assert len(pages) < 10_000, "the pages never end"
        pages.append(await process().page(KEY, limit=limit(), cursor=str(following)))
    return pages


def ids(pages: list[HistoryPage]) -> list[str]:
    return [each.id for page in pages for each in page.items]


@pytest.mark.parametrize("seed", range(20))
@in_a_loop
async def test_pages_have_each_event_once_over_restarts(seed: int, small: None) -> None:
    dice, topic = random.Random(seed), a_life(seed, 200)

    def process() -> History:
        return topic.process(dice.randrange(topic.end + 1))

    def limit() -> int:
        return dice.choice([1, 3, 10, 50])

    pages = await walk(process, limit=limit)
    compare(ids(pages[::-1]), topic)
    compare(ids(await walk(process, after="0", limit=limit)), topic)
    assert all(page.gap is None for page in pages)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("after", ["", "0"])
@in_a_loop
async def test_pages_without_memory_have_no_obstacle_twice(
    seed: int, after: str, small: None
) -> None:
    topic = a_life(seed, 100)
    pages = await walk(topic.process, after=after, limit=lambda: 3)
    assert ids(pages if after else pages[::-1]) == topic.events()


@in_a_loop
async def test_the_first_page_has_the_newest_and_the_next_one_older_ones() -> None:
    topic = LifeTopic()
    written = [each.id for each in topic.phases(5)]
    for history in (topic.process(0), topic.process()):  # of memory, and read again
        page = await history.page(KEY, limit=2)
        assert ids([page]) == written[3:]
        page = await history.page(KEY, limit=2, cursor=str(page.next))
        assert ids([page]) == written[1:3]
        page = await history.page(KEY, limit=2, cursor=str(page.next))
        assert (ids([page]), page.next, page.gap) == (written[:1], None, None)


@in_a_loop
async def test_what_is_in_memory_is_not_read_again() -> None:
    topic = LifeTopic()
    written = topic.phases(5)
    history = topic.process(0)
    topic.away = True
    page = await history.page(KEY, limit=5)
    assert len(page.items) == 5
    assert len((await history.page(KEY, limit=5, after=written[1].id)).items) == 3
    assert len(await receive(history, written[1].id, 3)) == 3
    assert topic.parts == []


@in_a_loop
async def test_without_kafka_an_unknown_past_is_no_empty_page() -> None:
    topic = LifeTopic()
    old = topic.phases(2)
    history = topic.process()
    topic.away = True
    for after in ("", "0", old[0].id):
        with pytest.raises(Retryable, match="kafka is away"):
            await history.page(KEY, limit=5, after=after)
    new = topic.phases(1)
    page = await history.page(KEY, limit=5)
    assert ids([page]) == [new[0].id]
    topic.away = False
    assert page.next is not None
    page = await history.page(KEY, limit=5, cursor=str(page.next))
    assert ids([page]) == [each.id for each in old]


@in_a_loop
async def test_a_page_reads_a_bounded_part_and_says_where_to_continue(small: None) -> None:
    topic = LifeTopic()
    topic.phases(1)
    topic.phases(1, others=1_000)
    topic.end += 500
    for after in ("", "0"):
        pages = await walk(topic.process, after=after, limit=lambda: 10)
        assert sorted(ids(pages)) == sorted(topic.events())
        assert len(pages) > 10
        assert [] in [[*page.items] for page in pages[:-1]]
    assert max(topic.parts) <= 100
    for page in pages:
        assert page.gap is None


@in_a_loop
async def test_events_that_retention_has_deleted_are_a_gap_with_a_word(small: None) -> None:
    topic = LifeTopic()
    written = topic.phases(30)
    back = await topic.process().page(KEY, limit=5)
    topic.start_at = 10
    history = topic.process()
    page = await history.page(KEY, limit=5, after=written[3].id)
    assert (page.gap, page.items[0]) == (HistoryGap.EXPIRED, written[10])
    page = await history.page(KEY, limit=5, cursor=str(page.next))
    assert (page.gap, page.items[0]) == (None, written[15])
    assert (await history.page(KEY, limit=5, after=written[9].id)).gap is None
    assert (await history.page(KEY, limit=5, after="0")).gap is None
    assert await receive(history, written[3].id, 2) == [HistoryGap.EXPIRED, written[10]]

    async def delete() -> None:
        topic.start_at = 27

    topic.meanwhile = delete
    page = await topic.process().page(KEY, limit=5, after=written[12].id)
    assert page.gap is HistoryGap.EXPIRED, "what is deleted while it is read may be missing"
    page = await topic.process().page(KEY, limit=5, cursor=str(back.next))
    assert (page.items, page.next, page.gap) == ((), None, HistoryGap.EXPIRED)


@in_a_loop
async def test_an_id_of_a_topic_that_was_created_again_is_not_misread() -> None:
    before = LifeTopic("topic-1")
    written = before.phases(10)
    back = await before.process().page(KEY, limit=2)
    topic = LifeTopic("topic-2")
    new = topic.phases(20)
    for history in (topic.process(), topic.process(0)):
        page = await history.page(KEY, limit=5, after=written[3].id)
        assert (page.gap, page.items[0]) == (HistoryGap.TOPIC_RECREATED, new[0])
        sent = await receive(history, written[3].id, 21)
        assert sent == [HistoryGap.TOPIC_RECREATED, *new]
        page = await history.page(KEY, limit=5, cursor=str(back.next))
        assert (page.items, page.next, page.gap) == ((), None, HistoryGap.TOPIC_RECREATED)


@in_a_loop
async def test_a_process_that_still_follows_a_deleted_topic_gives_no_answer() -> None:
    topic = LifeTopic("topic-1")
    written = topic.phases(3)
    following = FollowedTopic(topic_id="topic-1", begins=dict.fromkeys(range(PARTITIONS), 3))
    history = History(memory.Events(lambda: following), topic, streams_max=1)
    assert len((await history.page(KEY, limit=5, after="0")).items) == 3
    topic.id = "topic-2"
    for after in ("", "0", written[0].id, f"topic-2.{MINE}.1"):
        with pytest.raises(Retryable, match="created again"):
            await history.page(KEY, limit=5, after=after)


@in_a_loop
async def test_an_id_of_another_pipeline_is_named_as_one() -> None:
    topic = LifeTopic()
    written = topic.phases(3)
    other = f"{topic.id}.{(MINE + 1) % 8}.1"
    page = await topic.process().page(KEY, limit=5, after=other)
    assert (page.gap, ids([page])) == (HistoryGap.OTHER_PIPELINE, [each.id for each in written])


@in_a_loop
async def test_a_page_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_S", 0.01)
    topic = LifeTopic()
    topic.phases(1)
    topic.meanwhile = asyncio.Event().wait  # type: ignore[assignment]
    with pytest.raises(Retryable, match="could not be read within"):
        await topic.process().page(KEY, limit=5)


@pytest.mark.parametrize("text", NO_IDS)
@in_a_loop
async def test_a_text_that_is_no_id_or_cursor_is_refused(text: str) -> None:
    history = LifeTopic().process()
    with pytest.raises(Refusal, match="is the id of no event"):
        await history.page(KEY, limit=1, after=text)
    for cursor in (text, f"after.{text}", "later.topic.1.1"):
        with pytest.raises(Refusal, match="is no cursor of ours"):
            await history.page(KEY, limit=1, cursor=cursor)
    with pytest.raises(Refusal, match="is there as well"):
        await history.page(KEY, limit=1, cursor="after.topic.1.1", after="0")
