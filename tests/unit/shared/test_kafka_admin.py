"""What an answer of Kafka says, and what it does not say."""

import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.cluster import cluster_of

BEHIND_THE_LOOK = (
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_EXCEPTION,
)
MAY_NOT_ASK = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
NO_ANSWER = (
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError.UNKNOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.INVALID_REQUEST,
    KafkaError.SASL_AUTHENTICATION_FAILED,
)


class Controller:
    """Answers each request to create a topic with `code`, or has nothing against it."""

    def __init__(self, code: int | None) -> None:
        self._code = code

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool, request_timeout: float
    ) -> dict[str, "Future[None]"]:
        assert validate_only
        answer: Future[None] = Future()
        if self._code is None:
            answer.set_result(None)
        else:
            answer.set_exception(KafkaException(KafkaError(self._code)))
        return {topic.topic: answer for topic in wanted}


def admin(code: int | None) -> KafkaAdmin:
    return KafkaAdmin(lambda: cast(AdminClient, Controller(code)), cluster_of("nowhere:9092"))


def test_a_topic_that_could_be_made_is_absent() -> None:
    assert admin(None).absent("t")


def test_a_topic_that_exists_is_not_absent() -> None:
    assert not admin(KafkaError.TOPIC_ALREADY_EXISTS).absent("t")


@pytest.mark.parametrize("code", BEHIND_THE_LOOK)
def test_what_is_wrong_with_a_topic_that_is_not_there_says_so(code: int) -> None:
    assert admin(code).absent("t")


@pytest.mark.parametrize("code", MAY_NOT_ASK)
def test_who_may_not_ask_goes_by_what_the_brokers_say(code: int) -> None:
    assert admin(code).absent("t")


@pytest.mark.parametrize("code", NO_ANSWER)
def test_an_error_that_says_nothing_of_the_topic_is_no_answer(code: int) -> None:
    with pytest.raises(Retryable, match="topic t"):
        admin(code).absent("t")


class Waiting:
    def __init__(self) -> None:
        self.answer: Future[None] = Future()


def test_an_answer_that_is_told_later_holds_no_client() -> None:
    """It is told in a thread in which no client may end: that ends the process."""
    asking = KafkaAdmin(lambda: cast(AdminClient, Waiting()), cluster_of("nowhere:9092"))
    client, answer = weakref.ref(asking.client), cast(Waiting, asking.client).answer
    asking.ask(lambda _: {"": answer})
    del asking
    assert client() is None
    answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))


@pytest.mark.parametrize(("code", "clients"), [(KafkaError._TIMED_OUT, 2), (KafkaError.UNKNOWN, 1)])
def test_a_client_that_got_no_answer_is_replaced(code: int, clients: int) -> None:
    made: list[Waiting] = []

    def make() -> AdminClient:
        made.append(Waiting())
        return cast(AdminClient, made[-1])

    asking = KafkaAdmin(make, cluster_of("nowhere:9092"))
    asking.ask(lambda _: {"": made[-1].answer})
    made[-1].answer.set_exception(KafkaException(KafkaError(code)))
    asking.ask(lambda _: {})
    assert len(made) == clients
