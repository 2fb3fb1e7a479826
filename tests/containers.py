"""Kafka and Valkey in containers, from the images and with the settings of docker-compose.yml."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from ruamel.yaml import YAML

from integration.waiting import eventually
from waybill_local.ports import HOST, pick
from waybill_shared.kafka.admin import make_admin

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

COMPOSE = Path(__file__).parents[1] / "docker-compose.yml"
START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """What integration tests need of a stack."""

    kafka: str
    redis: str


def docker_answers() -> bool:
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        asked = subprocess.run(command, capture_output=True, timeout=ANSWER_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


@contextmanager
def servers_in_containers() -> Iterator[Servers]:
    from docker.errors import DockerException
    from testcontainers.core.container import DockerContainer

    ports = pick({"kafka": 0, "valkey": 0})
    found = Servers(kafka=f"{HOST}:{ports['kafka']}", redis=f"redis://{HOST}:{ports['valkey']}/0")
    services = YAML(typ="safe", pure=True).load(COMPOSE.read_text(encoding="utf-8"))["services"]
    with ExitStack() as stack:
        try:
            kafka = kafka_container(services["kafka"], found.kafka, ports["kafka"])
            valkey = DockerContainer(services["valkey"]["image"])
            valkey.with_command(services["valkey"]["command"])
            stack.enter_context(kafka)
            stack.enter_context(valkey.with_bind_ports(6379, ports["valkey"]))
        except DockerException as error:
            pytest.fail(f"{error}\n--no-containers uses the local stack's servers", pytrace=False)
        admin, client = make_admin(found.kafka), redis.Redis.from_url(found.redis)
        eventually(lambda: admin.reachable() is None, within_s=START_TIMEOUT_S)
        eventually(lambda: answers(client), within_s=START_TIMEOUT_S)
        yield found


def kafka_container(service: dict[str, Any], address: str, port: int) -> "DockerContainer":
    """Alone in its network, so that its controller is itself and clients come from outside."""
    from testcontainers.core.container import DockerContainer

    environment = {
        **service["environment"],
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@{HOST}:9093",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093,OUTSIDE://:9094",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{HOST}:9092,OUTSIDE://{address}",
    }
    return DockerContainer(service["image"]).with_envs(**environment).with_bind_ports(9094, port)


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False
