"""The table of rights: the topics' own definitions, the page and the commands say the same."""

import re
import shlex
from pathlib import Path

import pytest

from waybill_shared.access.acl_commands import acl_commands
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.grants import KAFKA_GRANTS, PREFIX, REDIS_GRANTS, PipelineTopics
from waybill_shared.contract.routes import SERVICES
from waybill_shared.contract.topics import topic_specs
from waybill_shared.tools.grants_page import tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "existing-clusters.md"
TOPICS = PipelineTopics(inputs=["orders.in"], outputs=["made by *"], dead_letters=["orders.in.dlq"])
CHANGES = {"hset", "hincrby", "zadd", "zremrangebyrank", "del", "publish"}


def may(service: str, operation: str, topic: str) -> bool:
    return any(
        operation in grant.operations and grant.name == f"{PREFIX}.{topic}"
        for grant in KAFKA_GRANTS[service]
        if grant.resource == "topic"
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_reads_and_writes_the_topics_whose_definitions_say_so(service: str) -> None:
    for spec in topic_specs():
        assert may(service, "Write", spec.name) == (service in spec.writers), spec.name
        assert may(service, "Read", spec.name) == (service in spec.readers), spec.name


def test_nobody_writes_all_topics_of_ours_or_all_there_are() -> None:
    for service, grants in KAFKA_GRANTS.items():
        for grant in grants:
            if grant.resource == "topic" and grant.prefixed:
                assert {*grant.operations} <= {"Create", "Describe", "DescribeConfigs"}, service


def test_only_the_tracker_changes_anything_in_redis() -> None:
    assert REDIS_GRANTS.keys() == {"token_tracker", "status"}
    assert not CHANGES & {*REDIS_GRANTS["status"].commands}


def test_the_page_has_the_tables_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    same = all(table in page for table in tables())

    assert same, (
        "put what `.venv/bin/python -m waybill_shared.tools.grants_page` prints into the page"
    )


def test_commands_name_user_and_pattern() -> None:
    printed = list(acl_commands("kafka:9092", "ours", "{service}@team", TOPICS))
    assert (
        "kafka-acls.sh --bootstrap-server kafka:9092 --command-config admin.properties --add"
        " --allow-principal User:ingress@team --operation Write --topic orders.in"
    ) in printed
    transactions = [line for line in printed if "--transactional-id" in line]
    assert [line.partition(" --operation ")[2] for line in transactions] == [
        f"Write --transactional-id {begins} --resource-pattern-type prefixed"
        for begins in ("ours/ingress/", "ours/token_tracker/", "ours/", "ours/status/")
    ]
    dead = [line.partition("User:")[2] for line in printed if " orders.in.dlq" in line]
    assert dead == [
        "ingress@team --operation Write --topic orders.in.dlq  # only to fetch files",
        "ingress@team --operation Read --topic orders.in.dlq  # only to replay dead letters",
        "stage_runner@team --operation Read --operation Write --topic orders.in.dlq",
        "stage_runner@team --operation Create --topic orders.in.dlq  # only to create topics",
        "status@team --operation Read --topic orders.in.dlq  # only to list dead letters",
    ]
    ends = [line.partition("User:")[2] for line in printed if "to show offsets" in line]
    assert ends[0] == "status@team --operation Describe --topic orders.in  # only to show offsets"
    (sinks,) = [line for line in printed if "--operation Read --operation Write --topic 'm" in line]
    assert shlex.split(sinks)[-4:] == ["--topic", "made by ", "--resource-pattern-type", "prefixed"]
    (status,) = [line for line in printed if line.startswith("ACL SETUSER status@team")]
    assert "-@all ~ours:* &ours:wake +ping " in status


@pytest.mark.parametrize("topic", ["*", "our*", "ours.*", "ours.commits"])
def test_a_pattern_that_would_let_others_write_commits_is_refused(topic: str) -> None:
    with pytest.raises(UserError, match=r"ours\.commits, which only the stage runner may write"):
        list(acl_commands("k", "ours", "u", PipelineTopics(dead_letters=[topic])))


def test_no_client_is_made_past_the_place_that_knows_users_and_certificates() -> None:
    folders = [ROOT / "shared/src", ROOT / "spark/src", ROOT / "client/src"]
    folders += (ROOT / "services").glob("*/src")
    files = {file: file.read_text() for folder in folders for file in folder.rglob("*.py")}
    for words, owners in {
        "bootstrap.servers": {
            "kafka/cluster.py",
            "driver/rehearsal.py",  # which reaches nobody
            "manifest/foreign_words.py",  # which refuses the word
        },
        "from_url(": {"redis/server.py"},
        "AdminClient(": {"kafka/admin.py", "access/kafka.py"},
        "Consumer(": {"kafka/clients.py"},
    }.items():
        found = {
            f"{file.parent.name}/{file.name}"
            for file in files
            if re.search(rf"\b{re.escape(words)}", file.read_text())
        }
        assert found == owners, words
