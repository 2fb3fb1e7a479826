"""Who follows a topic can wait until it knows what stands there now."""

import threading
import uuid

import pytest
from confluent_kafka.admin import NewTopic

from containers import Servers
from integration.waiting import eventually
from waybill_shared.contract import codec
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Reply
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer, produce_and_wait
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.kafka.topics import create_missing

WAIT_S = 120.0


def reply(id: str) -> Reply:
    return Reply(
        tenant="default",
        pipeline_uid="u",
        id=id,
        pipeline="p",
        action=Action.APPLY,
        actor="ada",
        state=OperationState.DONE,
        generation=3,
        errors=(),
        warnings=(),
        at=1,
    )


def test_now_is_known_only_when_all_that_stands_there_was_handed_over(servers: Servers) -> None:
    topic = f"follow-{uuid.uuid4().hex[:8]}"
    create_missing(make_admin(servers.kafka), [NewTopic(topic, 2, 1)])
    producer = make_producer(servers.kafka)
    taken: list[str] = []
    held = threading.Event()

    def accept(message: Reply) -> None:
        assert held.wait(WAIT_S)
        taken.append(message.id)

    with TopicFollower(servers.kafka, topic, Reply, accept) as follower:
        assert follower.caught_up.wait(WAIT_S)
        follower.await_now(WAIT_S)  # nothing stands there
        for name in ("a", "b", "c"):
            produce_and_wait(producer, topic, name, codec.encode(reply(name)))

        with pytest.raises(Retryable, match="was not read to its end"):
            follower.await_now(0.3)
        held.set()
        follower.await_now(WAIT_S)

        assert sorted(taken) == ["a", "b", "c"]


def test_the_end_of_a_transaction_is_nothing_to_wait_for(servers: Servers) -> None:
    """It takes an offset, and no reader is ever given it; what was aborted neither."""
    topic = f"follow-{uuid.uuid4().hex[:8]}"
    create_missing(make_admin(servers.kafka), [NewTopic(topic, 1, 1)])
    producer = make_producer(servers.kafka, **{"transactional.id": topic})
    producer.init_transactions(WAIT_S)
    taken: list[str] = []

    def say(name: str, *, commit: bool) -> None:
        producer.begin_transaction()
        produce_and_wait(producer, topic, name, codec.encode(reply(name)))
        (producer.commit_transaction if commit else producer.abort_transaction)(WAIT_S)

    def accept(message: Reply) -> None:
        taken.append(message.id)

    with TopicFollower(servers.kafka, topic, Reply, accept) as follower:
        assert follower.caught_up.wait(WAIT_S)
        say("a", commit=True)
        follower.await_now(WAIT_S)
        say("b", commit=False)
        follower.await_now(WAIT_S)
    with TopicFollower(servers.kafka, topic, Reply, accept) as late:
        assert late.caught_up.wait(WAIT_S)

    assert taken == ["a", "a"]


def test_readiness_names_the_topic_whose_follower_stands_still(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_shared.kafka.follower.LAG_INTERVAL_S", 0.1)
    monkeypatch.setattr("waybill_shared.kafka.follower.LAG_S_MAX", 0.3)
    topic = f"follow-{uuid.uuid4().hex[:8]}"
    create_missing(make_admin(servers.kafka), [NewTopic(topic, 1, 1)])
    held = threading.Event()

    def accept(message: Reply) -> None:
        assert held.wait(WAIT_S)

    with TopicFollower(servers.kafka, topic, Reply, accept) as follower:
        assert follower.caught_up.wait(WAIT_S)
        eventually(lambda: follower.check() is None)
        produce_and_wait(make_producer(servers.kafka), topic, "a", codec.encode(reply("a")))

        eventually(lambda: follower.check() is not None)
        assert topic in str(follower.check())
        held.set()
        eventually(lambda: follower.check() is None)
