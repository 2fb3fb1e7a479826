"""The Python processes of the stack as data, and the environment that all of them share.

Knows their names and modules, never their code.
"""

import http.client
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from waybill_local import archives, jars
from waybill_local.java import Java
from waybill_local.ports import HOST, address
from waybill_local.processes import ChildSpec

READY_TIMEOUT_S = 60
PROBE_TIMEOUT_S = 2.0
DEFAULT_TOPIC_PREFIX = "waybill"
KEY_RING = "keys.json"
CONNECTIONS = "connections.yaml"
CONNECTIONS_SETTING = "WAYBILL_CONNECTIONS_FILE"
LOOPBACK = "127.0.0.0/8,::1"  # the person who runs this stack may read there anyway
OF_OTHER_CLUSTERS = ("WAYBILL_KAFKA_", "WAYBILL_REDIS_")  # logins that this stack does not know


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A process that serves /readyz on its own port."""

    name: str
    module: str
    stop_timeout_s: float = 10.0


RUNNER = "stage_runner"
SERVICES = (
    Service(name="ingress", module="waybill_ingress"),
    Service(name="token_tracker", module="waybill_token_tracker"),
    # It ends its Spark drivers first, and those finish the batch they are in.
    Service(name=RUNNER, module="waybill_stage_runner", stop_timeout_s=55.0),
    Service(name="status", module="waybill_status"),
    Service(name="gateway", module="waybill_local.gateway"),
)


def environment(state_folder: Path, ports: Mapping[str, int], java: Java) -> dict[str, str]:
    """Return the caller's environment with this stack's addresses and folders in it."""
    spark_jars = jars.jar_set(jars.SPARK).folder
    ours = {
        "KAFKA": address(ports["kafka"]),
        "REDIS": f"redis://{address(ports['valkey'])}/0",
        "TOPIC_PREFIX": topic_prefix(),
        "TOKEN_KEYS_FILE": state_folder / KEY_RING,
        "STAGE_RUNNER_STATE_FOLDER": state_folder / "stage_runner",
        "STAGE_RUNNER_LAKEHOUSE": state_folder / "lakehouse",
        "STAGE_RUNNER_JAVA": java.path,
        "STAGE_RUNNER_SPARK_JARS": spark_jars,
        "STAGE_RUNNER_SPARK_ARCHIVES": archives.folder(),
        "LOG_FORMAT": os.environ.get("WAYBILL_LOG_FORMAT", "console"),
        "CONNECTORS_ALLOW": os.environ.get("WAYBILL_CONNECTORS_ALLOW", LOOPBACK),
        "WEBHOOKS_ALLOW": os.environ.get("WAYBILL_WEBHOOKS_ALLOW", LOOPBACK),
        **{f"{name.upper()}_PORT": port for name, port in ports.items()},
    }
    named = {f"WAYBILL_{name}": str(value) for name, value in ours.items()}
    theirs = {k: v for k, v in os.environ.items() if not k.startswith(OF_OTHER_CLUSTERS)}
    return {**theirs, "PYTHONUNBUFFERED": "1", **named}


def topic_prefix() -> str:
    return os.environ.get("WAYBILL_TOPIC_PREFIX", DEFAULT_TOPIC_PREFIX)


def spec(service: Service, port: int, shared: Mapping[str, str]) -> ChildSpec:
    """Return how to run `service` on `port`."""
    return ChildSpec(
        name=service.name,
        version=version("waybill-local"),
        address=address(port),
        command=(sys.executable, "-P", "-m", service.module),  # -P: import nothing from this folder
        environment=shared,
        wrong=_probe(port),
        ready_timeout_s=READY_TIMEOUT_S,
        stop_timeout_s=service.stop_timeout_s,
        restarts=True,
        fix="read its log; `waybill down` and `waybill up` start afresh with the same data",
    )


def _probe(port: int) -> Callable[[], str | None]:
    def wrong() -> str | None:
        connection = http.client.HTTPConnection(HOST, port, timeout=PROBE_TIMEOUT_S)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            return None if answer.status == 200 else f"/readyz: {answer.status} {text}"
        except (OSError, http.client.HTTPException) as error:
            return f"/readyz: {error}"
        finally:
            connection.close()

    return wrong
