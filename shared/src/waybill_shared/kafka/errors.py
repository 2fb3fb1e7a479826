"""What Kafka's errors mean to people."""

from confluent_kafka import KafkaError

REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
# Another producer with the same transactional id has started.
FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
)
# What is left of a transaction in which something else has failed.
PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
GRANT_HINT = (
    "`python -m waybill_shared.setup --print-acls` prints the commands that grant what is missing"
)
# Why a record is not accepted that is not at fault itself.
FOR_ANOTHER = PURGED | {KafkaError._INVALID_DIFFERENT_RECORD}
# Why a transaction accepts no more records: something in it has failed, or another owns its id.
SPOILT = frozenset({KafkaError._STATE, KafkaError._FATAL})


def explain(error: KafkaError) -> str:
    """Return Kafka's message; where a right is missing, also what to do."""
    return f"{error.str()} ({GRANT_HINT})" if error.code() in REFUSED else str(error.str())
