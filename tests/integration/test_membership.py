"""A consumer that its group forgets ends its process, so that a new one takes its place."""

import uuid
from collections.abc import Callable, Iterator

import pytest
import redis
from confluent_kafka import Consumer

from integration.conftest import Surroundings
from integration.waiting import eventually
from waybill_shared.contract.slots import Keys
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.kafka.membership import REJOIN_MAX_S, Membership
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.process.clock import SystemClock
from waybill_stage_runner.adapters.commands import CommandReader
from waybill_token_tracker.adapters.journal import STAMPED, KafkaJournal
from waybill_token_tracker.adapters.kafka import FactStream
from waybill_token_tracker.adapters.redis import RedisStore
from waybill_token_tracker.app.tracker import Tracker

POLL_S = 0.05


class Minutes:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self) -> None:
        self.now += REJOIN_MAX_S


class Member:
    def __init__(self, poll: Callable[[], object], minutes: Minutes) -> None:
        self.poll = poll
        self.minutes = minutes

    def given_up(self) -> bool:
        """Whether it would end its process now."""
        try:
            self.poll()
        except RuntimeError:
            return True
        return False


Join = Callable[[], Member]


@pytest.fixture(params=["token_tracker", "stage_runner"])
def join(request: pytest.FixtureRequest, surroundings: Surroundings) -> Iterator[Join]:
    """Adds one member to a group of its own."""
    group = uuid.uuid4().hex
    admin = make_admin(surroundings.kafka)
    consumers: list[Consumer] = []
    with redis.Redis.from_url(surroundings.redis) as client:

        def add() -> Member:
            minutes = Minutes()
            membership = Membership(admin, now=minutes)
            consumer = make_consumer(surroundings.kafka, group)
            consumers.append(consumer)
            prefix = surroundings.prefix
            if request.param == "stage_runner":
                commands = CommandReader(
                    consumer,
                    f"{prefix}.commands",
                    acquire=lambda partitions: None,
                    release=lambda partitions: None,
                    membership=membership,
                    topics=OwnTopics(admin, [f"{prefix}.commands"]),
                )
                return Member(lambda: commands.next(POLL_S), minutes)
            topics = OwnTopics(admin, [f"{prefix}.{name}" for name in STAMPED])
            journal = KafkaJournal(consumer, admin, topics, prefix=prefix)
            tracker = Tracker(RedisStore(client, Keys(prefix)), journal, SystemClock())
            stream = FactStream(
                consumer,
                admin,
                journal,
                prefix=prefix,
                tracker=tracker,
                membership=membership,
                clock=SystemClock(),
            )
            return Member(lambda: stream.feed(POLL_S), minutes)

        yield add
        # Who still waits to be let in by the others would wait five seconds more to leave.
        for consumer in consumers:
            consumer.close()


def assigned(member: Member) -> bool:
    """Whether time passes it by, given that it is asked at the end of it."""
    member.poll()
    before = member.minutes.now
    member.minutes.pass_by()
    outside = member.given_up()
    member.minutes.now = before
    return not outside


def test_a_member_that_the_group_gives_nothing_ends_after_a_minute(join: Join) -> None:
    first = join()
    eventually(lambda: assigned(first))
    second = join()

    for _ in range(
        20
    ):  # the first is not polled, so the group waits for it, and its broker answers
        assert not second.given_up()
    second.minutes.pass_by()

    assert second.given_up()


def test_members_with_a_part_go_on_for_ever(join: Join) -> None:
    first, second = join(), join()
    eventually(lambda: [assigned(first), assigned(second)] == [True, True])
    for member in (first, second):
        member.minutes.pass_by()
        assert not member.given_up()
