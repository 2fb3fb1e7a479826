"""Waybill on clusters of somebody else: TLS, a user per service, the rights of the table and no
others, topics that were made beforehand."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import redis
from confluent_kafka.admin import (
    AclBinding,
    NewTopic,
)

from certificates import Authority, write
from e2e.conftest import EXAMPLE, START_TIMEOUT_S, order
from e2e.existing_clusters.refusing import (
    OTHER,
    WAIT_S,
    Running,
    arguments_of,
    binding,
    content_of,
    groups,
    own,
    refused,
)
from e2e.existing_clusters.secured import MARK, TEAM, Secured, grant, secured, started
from e2e.waiting import eventually
from waybill import Client, Position
from waybill_local import services
from waybill_local.ports import pick
from waybill_shared.access.kafka import connected
from waybill_shared.contract.codec import encode
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Definition, Fact
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait
from waybill_shared.kafka.cluster import KafkaCluster
from waybill_shared.kafka.errors import GRANT_HINT
from waybill_shared.kafka.topics import PARTITIONS_HINT
from waybill_shared.redis.server import RedisServer

INPUT, OUTPUT = "orders.in", "orders.enriched"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """With all topics: Waybill's by the setup under its own user, the team's by an admin."""
    folder = tmp_path_factory.mktemp("clusters")
    with secured(folder, inputs=[INPUT], outputs=[OUTPUT]) as made:
        done = made.run("waybill_shared.setup", service="setup")
        assert done.returncode == 0, done.stderr
        assert '"topics": 15' in done.stderr
        names = [INPUT, OUTPUT, f"{INPUT}.dlq", f"{OUTPUT}.dlq"]
        topics = [NewTopic(name, 4, 1) for name in names]
        for future in made.admin.client.create_topics(topics).values():
            future.result()
        yield made


@pytest.fixture(scope="module")
def running(clusters: Secured) -> Iterator[Running]:
    """Every service as a process of its own, with a user of its own."""
    folder = clusters.folder
    names = [service.name for service in services.SERVICES]
    ports = pick({**dict.fromkeys(names, 0), "kafka": 0, "valkey": 0})
    base = services.environment(folder, ports, clusters.java)
    for name in ("WAYBILL_KAFKA", "WAYBILL_REDIS"):
        del base[name]
    specs = [
        services.spec(service, ports[service.name], {**base, **own(clusters, service.name)})
        for service in services.SERVICES
    ]
    with ExitStack() as stack:
        children = started(specs, folder, stack)
        yield Running(
            url=f"http://127.0.0.1:{ports['gateway']}",
            folder=folder,
            supervised=tuple(child.process.pid for child in children),
        )


@pytest.fixture(scope="module")
def client(running: Running) -> Iterator[Client]:
    with Client(running.url) as client:
        yield client


@pytest.fixture(scope="module")
def applied(client: Client) -> str:
    operation = client.apply(EXAMPLE.read_text())
    done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
    assert done.state == "done", done.errors
    return "orders"


def test_records_sent_over_http_and_straight_to_kafka_arrive(
    clusters: Secured, client: Client, applied: str, running: Running
) -> None:
    over_http = client.send(applied, "orders", [order(1), order(2)])
    report = produce_and_wait(
        make_producer(clusters.kafka(TEAM)), INPUT, "3", json.dumps(order(3)).encode()
    )
    partition, offset = position_of(report)
    topic_id = clusters.admin.identify([INPUT])[INPUT].topic_id
    position = Position(topic=INPUT, topic_id=topic_id, partition=partition, offset=offset)
    straight = client.token_for(applied, positions=[position])

    for token in (over_http.token, straight.token):
        outcome = client.wait(token, timeout_s=WAIT_S)
        assert (outcome.kind, [*outcome.iceberg_snapshots]) == ("complete", ["lake"])


def test_no_secret_is_in_a_log_a_file_or_an_argument(
    clusters: Secured, client: Client, applied: str, running: Running
) -> None:
    client.pipeline(applied)
    processes = [psutil.Process(pid) for pid in running.supervised]
    processes += [child for each in processes for child in each.children(recursive=True)]
    arguments = [words for process in processes for words in arguments_of(process)]
    assert any("java" in each for each in arguments), "the driver's JVM is looked at, too"
    files = [Path(at) / name for at, _, names in os.walk(clusters.folder) for name in names]
    assert any(file.name == "driver.log" for file in files)
    theirs = {clusters.folder / "kafka", clusters.folder / "valkey"}
    ours = [file for file in files if not theirs & set(file.parents)]
    shown = [file for file in ours if MARK.encode() in content_of(file)]
    assert (shown, [each for each in arguments if MARK in each]) == ([], [])


def test_ends_of_topics_are_unknown_until_status_may_ask_for_them(
    clusters: Secured, client: Client, applied: str
) -> None:
    offsets = client.offsets(applied)
    assert [(each.what, each.topic) for each in offsets.unknown] == [
        ("end", INPUT),
        ("end", OUTPUT),
    ]
    assert all(GRANT_HINT in each.detail for each in offsets.unknown)
    assert [stage.lag for stage in offsets.stages] == [None, None]
    rights = [acl for acl in clusters.spared if acl.principal.endswith("-status")]
    grant(clusters.admin, [acl for acl in rights if acl.name in {INPUT, OUTPUT}])
    eventually(lambda: client.offsets(applied).unknown == (), within_s=WAIT_S)


def test_stages_are_consumer_groups_where_the_tracker_may_write_them(
    clusters: Secured, applied: str
) -> None:
    client = clusters.admin.client
    wanted = {"waybill.orders.enrich", "waybill.orders.load"}
    assert not wanted & groups(client), "nothing hangs on them"
    grant(clusters.admin, clusters.spared)
    eventually(lambda: wanted <= groups(client), within_s=WAIT_S)


@pytest.mark.parametrize("service", ["ingress", "token_tracker", "status", "setup"])
def test_only_the_stage_runner_may_write_commits(clusters: Secured, service: str) -> None:
    forged = Fact(
        tenant="default",
        pipeline_uid="p",
        generation=1,
        at=0,
        body=Definition(name="p", deleted=False, stages=()),
    )
    # Else the broker may refuse already to number the records of who may write nothing at all.
    plain = {"enable.idempotence": False}
    producer = make_producer(clusters.kafka(f"waybill-{service}"), **plain)
    with pytest.raises(Retryable, match=r"waybill\.commits refused .* Topic authorization failed"):
        produce_and_wait(producer, "waybill.commits", "default/p", encode(forged))


def test_only_the_tracker_may_write_to_redis(clusters: Secured) -> None:
    environment = clusters.environment("status")
    server = RedisServer(
        url=environment["WAYBILL_REDIS"], authorities=clusters.authority.read_text()
    )
    with server.client(timeout_s=5.0) as status:
        assert status.ping()
        with pytest.raises(redis.exceptions.NoPermissionError):
            status.hset("waybill:{default/p}:slot", "slot", "forged")
        with pytest.raises(redis.exceptions.ResponseError, match="ACL failure in script"):
            status.register_script("return redis.call('del', KEYS[1])")(keys=["waybill:kept"])


@pytest.mark.parametrize(
    ("service", "acl", "said"),
    [
        (
            "ingress",
            binding("ingress", "WRITE", "waybill.commands"),
            "User:waybill-ingress lacks Write on topic waybill.commands in Kafka",
        ),
        (
            "status",
            binding("status", "READ", "waybill.replies"),
            "User:waybill-status lacks Read on topic waybill.replies in Kafka",
        ),
        (
            "token_tracker",
            binding("token_tracker", "DESCRIBE", "waybill-reader", "group"),
            "User:waybill-token_tracker lacks Describe on group waybill-reader in Kafka",
        ),
        (
            "stage_runner",
            binding("stage_runner", "WRITE", "waybill.commits"),
            "User:waybill-stage_runner lacks Write on topic waybill.commits in Kafka",
        ),
        (
            "stage_runner",
            binding("stage_runner", "READ", "waybill.stage_runner", "group"),
            "User:waybill-stage_runner lacks Read on group waybill.stage_runner in Kafka",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_a_right_that_is_missing_is_named_at_the_start(
    clusters: Secured, service: str, acl: AclBinding, said: str
) -> None:
    with clusters.without(acl):
        line = refused(clusters, service)
    assert line == f"cannot run: {said} ({GRANT_HINT})"


@pytest.mark.parametrize(
    ("service", "settings", "said"),
    [
        (
            "ingress",
            {"WAYBILL_KAFKA_SASL_PASSWORD": f"{MARK} but wrong"},
            r"as User:waybill-ingress: .*Authentication failed.* \(see WAYBILL_KAFKA_SASL_USERNAME",
        ),
        (
            "setup",
            {"WAYBILL_KAFKA_SASL_USERNAME": "nobody"},
            r"as User:nobody: .*Authentication failed.* \(see WAYBILL_KAFKA_SASL_USERNAME",
        ),
        (
            "status",
            {"WAYBILL_REDIS": "rediss://waybill-status:wrong@127.0.0.1:REDIS/0"},
            r"redis, as user waybill-status: .*invalid.* \(see the user and the password in WAYB",
        ),
        (
            "status",
            {"WAYBILL_REDIS": "rediss://waybill-token_tracker:PASSWORD@127.0.0.1:REDIS/0"},
            r"redis, as user waybill-token_tracker: no right to zcard, subscribe",
        ),
    ],
)
def test_who_may_not_in_is_told_so_at_the_start(
    clusters: Secured, service: str, settings: dict[str, str], said: str
) -> None:
    tracker = clusters.environment("token_tracker")["WAYBILL_REDIS"]
    password = tracker.partition("waybill-token_tracker:")[2].partition("@")[0]
    filled = {
        name: value.replace("REDIS/", f"{clusters.redis_port}/").replace("PASSWORD", password)
        for name, value in settings.items()
    }
    assert re.search(said, refused(clusters, service, **filled))


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("KAFKA_SSL_CA_FILE", r"certificate verify failed.*\(see WAYBILL_KAFKA_SSL_CA_FILE"),
        ("REDIS_SSL_CA_FILE", r"CERTIFICATE_VERIFY_FAILED.*\(see WAYBILL_REDIS_SSL_CA_FILE"),
    ],
)
def test_servers_of_an_authority_that_is_not_trusted_are_not_talked_to(
    clusters: Secured, tmp_path: Path, variable: str, said: str
) -> None:
    stranger = write(tmp_path / "stranger.pem", Authority("somebody else's").certificate)
    assert re.search(said, refused(clusters, "status", **{f"WAYBILL_{variable}": stranger}))


def test_a_protocol_that_the_cluster_does_not_speak_is_hinted_at(
    clusters: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    assert not connected(KafkaCluster(bootstrap=clusters.kafka_address))
    (record,) = caplog.records
    assert "WAYBILL_KAFKA_SECURITY_PROTOCOL" in vars(record)["hint"]


def test_topics_that_exist_otherwise_are_refused(clusters: Secured) -> None:
    client = clusters.admin.client
    config = {"cleanup.policy": "compact"}
    topics = [
        NewTopic(f"{OTHER}.commits", 3, 1),
        NewTopic(f"{OTHER}.replies", 8, 1, config=config),
    ]
    for future in client.create_topics(topics).values():
        future.result()
    done = clusters.run("waybill_shared.setup", service="setup", WAYBILL_TOPIC_PREFIX=OTHER)
    commits, replies = done.stderr.splitlines()
    assert done.returncode == 2
    assert commits == (
        f"cannot run: topic {OTHER}.commits has 3 partitions and needs 8 ({PARTITIONS_HINT})"
    )
    assert replies == (
        f"cannot run: topic {OTHER}.replies has cleanup.policy=compact and needs delete"
        " (set its cleanup.policy to delete)"
    )
    assert make_admin(clusters.admin.cluster).identify([f"{OTHER}.fences"]) == {}


def test_a_pipeline_whose_sink_may_not_be_written_is_refused_as_a_whole(
    clusters: Secured, client: Client, applied: str
) -> None:
    manifest = EXAMPLE.read_text().replace("name: orders\n", "name: other\n", 1)
    with clusters.without(binding("stage_runner", "WRITE", OUTPUT)):
        operation = client.apply(manifest.replace("raw.orders", "raw.other"), allow_shared=True)
        done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
    assert done.state == "failed"
    assert [error.message for error in done.errors] == [
        f"User:waybill-stage_runner lacks Write on topic {OUTPUT} in Kafka"
    ]
