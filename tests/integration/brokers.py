"""A broker of a module's own, with a road in front of one of its ports."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from waybill_local import jars
from waybill_local.broker import Broker, spec
from waybill_local.folders import make_private
from waybill_local.java import find_java
from waybill_local.processes import Child, start, stop, wait_ready


@contextmanager
def own_broker(
    paths: pytest.TempPathFactory,
    ports: dict[str, int],
    *,
    advertised_port: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> Iterator[Child]:
    with running(make_broker(paths, ports, advertised_port, settings)) as child:
        yield child


def make_broker(
    paths: pytest.TempPathFactory,
    ports: dict[str, int],
    advertised_port: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> Broker:
    java = find_java()
    jars.retrieve_all(java=java, progress=lambda progress: None)
    return Broker(
        java=java,
        jars=jars.jar_set(jars.KAFKA),
        folder=paths.mktemp("broker"),
        port=ports["kafka"],
        controller_port=ports["controller"],
        advertised_port=advertised_port,
        settings=settings or {},
    )


@contextmanager
def running(kafka: Broker) -> Iterator[Child]:
    """With the data that it has from the time before."""
    child = start(spec(kafka), make_private(kafka.folder / "logs"))
    try:
        wait_ready([child], interrupted=lambda: False, on_ready=lambda child: None)
        yield child
    finally:
        stop([child], forced=lambda: True, on_stopped=lambda child, graceful: None)
