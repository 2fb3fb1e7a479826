"""The first start of a user: what needs no Spark runs while Spark's jars are on their way."""

import http.client
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from integration.local_stack.place import Place, state_of
from integration.local_stack.test_life import (
    GONE_S,
    Foreground,
    assert_gone,
    foreground,  # noqa: F401 - a fixture
    read_until,
)
from waybill_local import jars, stack
from waybill_local.jars import JarSet

SETTINGS = """<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root="http://127.0.0.1:{port}/"/></resolvers>
</ivysettings>"""


@pytest.fixture
def spark_jars(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JarSet]:
    """Jars that never arrive: a mirror accepts, and does not answer. Those of Kafka are here."""
    kafka = jars.jar_set(jars.KAFKA).folder
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jars.root().mkdir(parents=True)
    jars.jar_set(jars.KAFKA).folder.symlink_to(kafka)
    settings = tmp_path / "ivy.xml"
    monkeypatch.setenv("WAYBILL_IVY_SETTINGS", str(settings))
    place.add_service("stage_runner")
    with socket.create_server(("127.0.0.1", 0)) as mirror:
        settings.write_text(SETTINGS.format(port=mirror.getsockname()[1]))
        yield jars.jar_set(jars.SPARK)


def test_records_are_accepted_while_jars_of_spark_come_and_ctrl_c_ends_it(
    spark_jars: JarSet,
    foreground: Foreground,  # noqa: F811
    place: Place,
) -> None:
    read_until(foreground, "ingress")
    state = state_of(place)
    connection = http.client.HTTPConnection("127.0.0.1", state.ports["ingress"])
    connection.request("GET", "/readyz")
    assert connection.getresponse().status == 200
    assert "stage_runner" not in [process.name for process in state.processes]
    helpers = psutil.Process(foreground.pid).children(recursive=True)
    foreground.send_signal(signal.SIGINT)
    foreground.communicate(timeout=GONE_S)
    assert foreground.returncode == 130
    assert_gone(helpers)
    assert not spark_jars.present


def test_jars_that_never_come_are_told_and_nothing_is_left(
    spark_jars: JarSet, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_IVY_SETTINGS", str(place.folder / "none.xml"))
    with pytest.raises(stack.StackError, match="no Ivy settings at"):
        place.up()
    assert not spark_jars.present
    assert not list(jars.root().glob(f".{spark_jars.name}-*"))
