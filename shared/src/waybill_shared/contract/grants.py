"""The one table of what each service may do in Kafka and in Redis, and nothing more.

A user that may write commits may end any token, so only the stage runner does. Only the tracker
changes slots. docs/existing-clusters.md and `python -m waybill_shared.setup --print-acls` are made
from this table, and an end-to-end test gives services exactly these rights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

KafkaOperation = Literal[
    "Read", "Write", "Create", "Describe", "DescribeConfigs", "Alter", "Delete"
]
Resource = Literal["topic", "group", "transactional-id"]
Need = Literal[
    "always",
    "to create topics",
    "to show lag in Kafka",
    "to show offsets",
    "to propose columns",
    "to replay dead letters",
    "to list batches",
    "to list dead letters",
    "to fetch files",
    "to add partitions",
]

PREFIX: Final = "PREFIX"  # replaces WAYBILL_TOPIC_PREFIX at the start of a name
INPUTS: Final = "INPUTS"  # the topics that pipelines read and nothing of them writes
OUTPUTS: Final = "OUTPUTS"  # the topics of their Kafka sinks
DEAD: Final = "DEAD_LETTERS"  # their dead-letter topics


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaGrant:
    """Write and Read include Describe."""

    operations: tuple[KafkaOperation, ...]
    resource: Resource
    name: str
    prefixed: bool = False
    why: str
    need: Need = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisGrant:
    commands: tuple[str, ...]
    keys: str
    channel: str


def _grant(
    operation: KafkaOperation, *more: KafkaOperation, topic: str, why: str, need: Need = "always"
) -> KafkaGrant:
    return KafkaGrant(
        operations=(operation, *more), resource="topic", name=topic, why=why, need=need
    )


def _group(name: str, operation: KafkaOperation, why: str, need: Need = "always") -> KafkaGrant:
    return KafkaGrant(operations=(operation,), resource="group", name=name, why=why, need=need)


def _transactions(begins: str, what: str) -> KafkaGrant:
    return KafkaGrant(
        operations=("Write",),
        resource="transactional-id",
        name=begins,
        prefixed=True,
        why=f"{what}: in one transaction",
    )


READER: Final = "waybill-reader"
FOLLOWER: Final = "waybill-follower"
NEVER_JOINED: Final = "clients name a group even when they read without one"
CREATION: Final = "topics of new pipelines; also to find out whether a topic was deleted (below)"

KAFKA_GRANTS: Final[dict[str, tuple[KafkaGrant, ...]]] = {
    "setup": (
        KafkaGrant(
            operations=("Create", "Describe", "DescribeConfigs"),
            resource="topic",
            name=f"{PREFIX}.",
            prefixed=True,
            why="makes Waybill's topics, or checks those that exist",
        ),
    ),
    "ingress": (
        _grant("Read", topic=f"{PREFIX}.pipelines", why="which pipelines there are"),
        _grant("Write", topic=f"{PREFIX}.commands", why="what people want of pipelines"),
        _grant("Read", topic=f"{PREFIX}.replies", why="answers to commands"),
        _grant("Read", "Write", topic=f"{PREFIX}.replays", why="which dead letters are replayed"),
        _grant("Read", "Write", topic=f"{PREFIX}.requests", why="who carries out a repeated write"),
        _grant("Read", "Write", topic=f"{PREFIX}.answers", why="what was answered to it"),
        _grant("Read", "Write", topic=f"{PREFIX}.connectors", why="how far files were fetched"),
        _grant(
            "Read", "Write", topic=f"{PREFIX}.watches", why="who wants to be notified of tokens"
        ),
        _grant("Write", topic=INPUTS, why="records over HTTP and of files"),
        _transactions(f"{PREFIX}/ingress/", "what is written and the events about it"),
        _group(FOLLOWER, "Describe", NEVER_JOINED),
        _group(READER, "Describe", NEVER_JOINED),
        _group(f"{PREFIX}.connectors", "Read", "its share of the files that are fetched"),
        _grant("Write", topic=DEAD, why="rows of files that are no records", need="to fetch files"),
        _grant("Read", topic=DEAD, why="their records", need="to replay dead letters"),
        _grant("Read", topic=INPUTS, why="the newest records", need="to propose columns"),
        _grant("Alter", topic=INPUTS, why="`waybill topic grow`", need="to add partitions"),
    ),
    "token_tracker": (
        _grant("Read", topic=f"{PREFIX}.commits", why="facts"),
        _grant("Read", topic=f"{PREFIX}.lifecycle", why="phases"),
        _grant("Read", topic=f"{PREFIX}.beats", why="that runners are alive"),
        _grant("Read", "Write", topic=f"{PREFIX}.frontiers", why="its own snapshots"),
        _grant("Write", topic=f"{PREFIX}.status", why="events for programs of others"),
        _group(f"{PREFIX}.token_tracker", "Read", "its share of the partitions"),
        _group(f"{PREFIX}.announcements", "Read", "its share of the events for others"),
        _transactions(f"{PREFIX}/token_tracker/", "snapshots with their offsets"),
        _group(READER, "Describe", NEVER_JOINED),
        _grant("Describe", topic=INPUTS, why="where they end: lag in `/metrics`"),
        _grant("Describe", topic=OUTPUTS, why="where they end: lag in `/metrics`"),
        _grant("Read", topic=INPUTS, why="offsets of groups", need="to show lag in Kafka"),
        _grant("Read", topic=OUTPUTS, why="offsets of groups", need="to show lag in Kafka"),
        KafkaGrant(
            operations=("Read", "Delete"),
            resource="group",
            name=f"{PREFIX}.",
            prefixed=True,
            why="a group for each stage",
            need="to show lag in Kafka",
        ),
    ),
    "stage_runner": (
        _grant("Read", topic=f"{PREFIX}.commands", why="what people want of pipelines"),
        _grant("Read", "Write", topic=f"{PREFIX}.pipelines", why="definitions"),
        _grant("Write", topic=f"{PREFIX}.commits", why="a forged one completes tokens"),
        _grant("Read", topic=f"{PREFIX}.commits", why="what died before a stage is rewound"),
        _grant("Read", topic=f"{PREFIX}.replays", why="dead letters that come back"),
        _grant("Read", "Write", topic=f"{PREFIX}.fences", why="what Kafka sinks hold"),
        _grant("Write", topic=f"{PREFIX}.lifecycle", why="phases"),
        _grant("Write", topic=f"{PREFIX}.beats", why="that it is alive"),
        _grant("Read", "Write", topic=f"{PREFIX}.replies", why="answers to commands"),
        KafkaGrant(
            operations=("Describe", "DescribeConfigs"),
            resource="topic",
            name=f"{PREFIX}.",
            prefixed=True,
            why="whether topics made by others have the right configuration",
        ),
        _group(f"{PREFIX}.stage_runner", "Read", "its share of the partitions"),
        _group(READER, "Describe", NEVER_JOINED),
        _grant("Read", topic=INPUTS, why="stages"),
        _grant("Read", "Write", topic=OUTPUTS, why="sinks, and stages that read them"),
        _grant("Read", "Write", topic=DEAD, why="records that a stage cannot process"),
        _transactions(f"{PREFIX}/", "a batch with its fence, a change with its definition"),
        _grant("Create", topic=INPUTS, why=CREATION, need="to create topics"),
        _grant("Create", topic=OUTPUTS, why=CREATION, need="to create topics"),
        _grant("Create", topic=DEAD, why=CREATION, need="to create topics"),
    ),
    "status": (
        _grant("Read", topic=f"{PREFIX}.pipelines", why="which pipelines there are"),
        _grant("Read", topic=f"{PREFIX}.replies", why="answers to commands"),
        _grant("Read", topic=f"{PREFIX}.lifecycle", why="what happened to pipelines"),
        _grant("Read", topic=f"{PREFIX}.replays", why="which dead letters are replayed"),
        _grant("Read", topic=f"{PREFIX}.connectors", why="how far files were fetched"),
        _grant(
            "Read", "Write", topic=f"{PREFIX}.watches", why="who wants to be notified of tokens"
        ),
        _grant("Read", "Write", topic=f"{PREFIX}.status", why="events for programs of others"),
        _grant(
            "Read",
            "Write",
            topic=f"{PREFIX}.deliveries",
            why="how far events are on their way to webhooks",
        ),
        _transactions(f"{PREFIX}/status/", "events with the watches that they end"),
        _group(f"{PREFIX}.status", "Read", "its share of the watches"),
        _group(FOLLOWER, "Describe", NEVER_JOINED),
        _group(READER, "Describe", NEVER_JOINED),
        _grant("Read", topic=f"{PREFIX}.commits", why="what stages did", need="to list batches"),
        _grant("Read", topic=DEAD, why="their records", need="to list dead letters"),
        _grant("Describe", topic=INPUTS, why="where they end", need="to show offsets"),
        _grant("Describe", topic=OUTPUTS, why="where they end", need="to show offsets"),
    ),
}

CONNECTING: Final = ("ping", "select", "client|setinfo")
SCRIPTS: Final = ("evalsha", "script|load", "script|exists", "info", "time", "hmget")

REDIS_GRANTS: Final[dict[str, RedisGrant]] = {
    "token_tracker": RedisGrant(
        commands=(
            *CONNECTING, *SCRIPTS, "hset", "hincrby", "zrange", "zadd", "zremrangebyrank", "del",
            "publish",
        ),
        keys=f"{PREFIX}:*",
        channel=f"{PREFIX}:wake",
    ),
    "status": RedisGrant(
        commands=(*CONNECTING, *SCRIPTS, "zrange", "zcard", "subscribe", "unsubscribe"),
        keys=f"{PREFIX}:*",
        channel=f"{PREFIX}:wake",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineTopics:
    """Topics of pipelines by names; `orders.*` means all names that start so."""

    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    dead_letters: Sequence[str] = ()

    def __iter__(self) -> Iterator[str]:
        return iter((*self.inputs, *self.outputs, *self.dead_letters))


NO_TOPICS: Final = PipelineTopics()


def kafka_grants(
    service: str, prefix: str, topics: PipelineTopics = NO_TOPICS
) -> Iterator[KafkaGrant]:
    """Yield the grants of `service` with all names filled in."""
    pipelines = {INPUTS: topics.inputs, OUTPUTS: topics.outputs, DEAD: topics.dead_letters}
    for grant in KAFKA_GRANTS[service]:
        if grant.name in pipelines:
            for topic in dict.fromkeys(pipelines[grant.name]):
                name = topic.removesuffix("*")
                yield replace(grant, name=name or "*", prefixed=bool(name) and name != topic)
        else:
            yield replace(grant, name=grant.name.replace(PREFIX, prefix, 1))
