"""Creates the `waybill.*` topics, and says what of them is not as we need it.

Topics are never created by accident: brokers run with automatic creation off.
"""

from collections.abc import Iterable, Iterator

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic

from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.topics import topic_specs
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.cluster import Kafka

CREATE_TIMEOUT_S = 15.0
ASK_TIMEOUT_S = 10.0
ACTIVE_BYTES_MAX = 128 * 1024 * 1024  # of what is never compacted, and read at each start
PARTITIONS_HINT = (
    "all of Waybill's topics have the same number, for good: delete the topic and create it again"
    " before the first pipeline is applied; later, what it holds is lost (docs/operations.md)"
)
CREATE_HINT = "choose what the broker takes, or create the topic beforehand"
GROW_HINT = "it needs the right Alter on the topic, and a number that the broker takes"
DEFINITIVE = frozenset(
    {
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_CONFIG,
        KafkaError.POLICY_VIOLATION,
    }
)


def create_topics(kafka: Kafka, prefix: str, *, replication: int = 1) -> list[str]:
    """Create the topics that are missing, and return their names. Others stay as they are."""
    admin = make_admin(kafka)
    specs = {f"{prefix}.{spec.name}": spec for spec in topic_specs()}
    present = admin.identify(specs)
    wanted = [
        NewTopic(name, spec.partitions, replication, config=spec.kafka_config())
        for name, spec in specs.items()
        if name not in present
    ]
    return create_missing(admin, wanted) if wanted else []


def topic_problems(admin: KafkaAdmin, prefix: str) -> Iterator[Problem]:
    """Yield what is wrong with our topics that exist. Missing ones are created by another step."""
    specs = {f"{prefix}.{spec.name}": spec for spec in topic_specs()}
    present = admin.identify(specs)
    settings = _settings(admin, present)
    for name in sorted(present):
        spec, partitions = specs[name], len(present[name].partitions)
        if partitions != spec.partitions:
            message = f"topic {name} has {partitions} partitions and needs {spec.partitions}"
            yield Problem(message=message, hint=PARTITIONS_HINT)
        cleanup, segment = settings[name]
        if cleanup != spec.cleanup:
            message = f"topic {name} has cleanup.policy={cleanup} and needs {spec.cleanup}"
            yield Problem(message=message, hint=f"set its cleanup.policy to {spec.cleanup}")
        elif cleanup.startswith("compact") and segment > ACTIVE_BYTES_MAX:
            message = f"topic {name} has segment.bytes={segment}, of which nothing is compacted"
            wanted = spec.config["segment.bytes"]
            hint = f"set its segment.bytes to {wanted}, or to {ACTIVE_BYTES_MAX} at most"
            yield Problem(message=message, hint=hint)


def _settings(admin: KafkaAdmin, topics: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Return cleanup policy and bytes of a segment, by topic.

    Raise Retryable when Kafka does not report them.
    """
    asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
    if not asked:
        return {}
    found = {}
    configs = admin.ask(
        lambda client: client.describe_configs(asked, request_timeout=ASK_TIMEOUT_S)
    )
    for resource, future in configs.items():
        try:
            config = future.result()
            cleanup, segment = config["cleanup.policy"].value, config["segment.bytes"].value
            found[resource.name] = str(cleanup), int(segment)
        except KafkaException as error:
            text = f"the configuration of topic {resource.name}: {error.args[0].str()}"
            if error.args[0].code() in DEFINITIVE:
                message = f"{text}: this user lacks DescribeConfigs on it"
                raise UserError([Problem(message=message)]) from error
            raise Retryable(text) from error
    return found


def add_partitions(admin: KafkaAdmin, topic: str, partitions: int) -> None:
    """Let a topic have so many partitions. Raise UserError when Kafka will never do it, Retryable
    when it may later.
    """
    asked = admin.ask(
        lambda client: client.create_partitions(
            [NewPartitions(topic, partitions)],
            operation_timeout=CREATE_TIMEOUT_S,
            request_timeout=CREATE_TIMEOUT_S,
        )
    )
    try:
        asked[topic].result()
    except KafkaException as error:
        message = f"topic {topic}: {error.args[0].str()}"
        if error.args[0].code() in DEFINITIVE:
            raise UserError([Problem(message=message, hint=GROW_HINT)]) from error
        raise Retryable(message) from error


def create_missing(admin: KafkaAdmin, topics: list[NewTopic]) -> list[str]:
    """Create topics and return their names.

    Raise UserError when Kafka will never create one, Retryable when it may later.
    """
    created = []
    asked = admin.ask(
        lambda client: client.create_topics(
            topics, operation_timeout=CREATE_TIMEOUT_S, request_timeout=CREATE_TIMEOUT_S
        )
    )
    for name, future in asked.items():
        try:
            future.result()
            created.append(name)
        except KafkaException as error:
            code, message = error.args[0].code(), f"topic {name}: {error.args[0].str()}"
            if code in DEFINITIVE:
                raise UserError([Problem(message=message, hint=CREATE_HINT)]) from error
            if code != KafkaError.TOPIC_ALREADY_EXISTS:
                raise Retryable(message) from error
    return created
