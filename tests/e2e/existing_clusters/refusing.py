"""How services are started in secured clusters, and what is seen of them."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from e2e.existing_clusters.secured import MARK, SERVICES, Secured

WAIT_S = 120.0
OTHER = "waybill.other"  # a prefix under which setup may make topics, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    url: str
    folder: Path
    supervised: tuple[int, ...]


def own(clusters: Secured, service: str) -> Mapping[str, str]:
    return clusters.environment(service) if service in SERVICES else {}


def binding(
    service: str, operation: str, name: str, kind: str = "topic", *, prefixed: bool = False
) -> AclBinding:
    return AclBinding(
        ResourceType[kind.upper()],
        name,
        ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
        f"User:waybill-{service}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def refused(clusters: Secured, service: str, **settings: str) -> str:
    """The last words of a service that must not start."""
    module = "waybill_shared.setup" if service == "setup" else f"waybill_{service}"
    done = clusters.run(module, service=service, WAYBILL_HOST="127.0.0.1", **settings)
    assert done.returncode == 2, done.stderr
    assert MARK not in done.stderr + done.stdout
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("cannot run: ")]
    return line


def content_of(file: Path) -> bytes:
    """Nothing of one that has just gone: Spark writes under other names first."""
    with suppress(FileNotFoundError):
        return file.read_bytes()
    return b""


def arguments_of(process: psutil.Process) -> Iterator[str]:
    """Nothing of one that has just ended: a JVM has helpers for a moment."""
    with suppress(psutil.NoSuchProcess):
        yield " ".join(process.cmdline())


def groups(client: AdminClient) -> set[str]:
    return {group.group_id for group in client.list_consumer_groups().result().valid}
