"""What the services are told by their environment."""

from pathlib import Path

import pytest

from waybill_local.java import Java
from waybill_local.services import environment

PORTS = {"gateway": 8080, "kafka": 9092, "valkey": 6379, "controller": 9093, "stage_runner": 4711}
JAVA = Java(path=Path("/opt/java/bin/java"), version="17", bundled=False)


def test_services_learn_addresses_and_folders(tmp_path: Path, cache: Path) -> None:
    told = environment(tmp_path, PORTS, JAVA)
    assert told["WAYBILL_KAFKA"] == "127.0.0.1:9092"
    assert told["WAYBILL_REDIS"] == "redis://127.0.0.1:6379/0"
    assert told["WAYBILL_STAGE_RUNNER_PORT"] == "4711"
    assert told["WAYBILL_TOKEN_KEYS_FILE"] == str(tmp_path / "keys.json")
    assert told["WAYBILL_STAGE_RUNNER_JAVA"] == "/opt/java/bin/java"
    assert Path(told["WAYBILL_STAGE_RUNNER_SPARK_JARS"]).parent == cache / "jars"
    assert Path(told["WAYBILL_STAGE_RUNNER_SPARK_ARCHIVES"]) == cache / "archives"


def test_own_settings_pass_through_but_addresses_are_the_stacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_KAFKA", "elsewhere:9092")
    monkeypatch.setenv("WAYBILL_TOPIC_PREFIX", "other")
    monkeypatch.setenv("WAYBILL_STAGE_RUNNER_SOMETHING", "kept")
    told = environment(tmp_path, PORTS, JAVA)
    assert told["WAYBILL_KAFKA"] == "127.0.0.1:9092"
    assert told["WAYBILL_TOPIC_PREFIX"] == "other"
    assert told["WAYBILL_STAGE_RUNNER_SOMETHING"] == "kept"


def test_logins_to_other_clusters_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_KAFKA_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("WAYBILL_REDIS_SSL_CA_FILE", "elsewhere.pem")
    told = environment(tmp_path, PORTS, JAVA)
    assert not {"WAYBILL_KAFKA_SECURITY_PROTOCOL", "WAYBILL_REDIS_SSL_CA_FILE"} & told.keys()
    assert told["WAYBILL_KAFKA_PORT"] == "9092"
