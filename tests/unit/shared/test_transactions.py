"""What the client raises about a transaction, as one of its ends."""

from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from waybill_shared.kafka.transactions import (
    EndUnknown,
    Fenced,
    IdRefused,
    NothingCounts,
    TransactionalProducer,
    TransactionFailed,
)

PRODUCER = TransactionalProducer(cast(Producer, None), "waybill/7", "ada")


def kafka_error(code: int, *, fatal: bool = False, must_abort: bool = False) -> KafkaException:
    return KafkaException(
        KafkaError(code, "said by Kafka", fatal=fatal, txn_requires_abort=must_abort)
    )


def hidden(cause: Exception | None) -> SystemError:
    error = SystemError("returned a result with an exception set")
    error.__cause__ = cause
    return error


TIMED_OUT = KafkaError._TIMED_OUT


@pytest.mark.parametrize(
    ("error", "end", "end_of_commit"),
    [
        (kafka_error(KafkaError._FENCED), Fenced, Fenced),
        (kafka_error(KafkaError._FATAL, fatal=True), Fenced, Fenced),
        (kafka_error(TIMED_OUT), NothingCounts, EndUnknown),
        (kafka_error(TIMED_OUT, must_abort=True), NothingCounts, NothingCounts),
        (kafka_error(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), IdRefused, IdRefused),
        (hidden(kafka_error(KafkaError._FENCED)), Fenced, Fenced),
        (hidden(None), NothingCounts, EndUnknown),
        (BufferError("queue full"), NothingCounts, NothingCounts),
    ],
    ids=["fenced", "fatal", "timed out", "abort", "not allowed", "hidden", "no cause", "full"],
)
def test_each_error_of_the_client_is_an_end_of_the_transaction(
    error: Exception, end: type[TransactionFailed], end_of_commit: type[TransactionFailed]
) -> None:
    for committing, expected in ((False, end), (True, end_of_commit)):
        with pytest.raises(TransactionFailed) as raised, PRODUCER.errors(committing=committing):
            raise error
        assert type(raised.value) is expected


def test_an_error_that_is_not_of_the_client_passes() -> None:
    with pytest.raises(ValueError, match="ours"), PRODUCER.errors():
        raise ValueError("ours")
