"""Kafka's data folder is prepared once; a machine that is too busy gets a sentence."""

from pathlib import Path

import pytest

from waybill_local import broker
from waybill_local.broker import Broker
from waybill_local.errors import StackError
from waybill_local.jars import Jar, JarSet
from waybill_local.java import Java


def test_a_format_that_takes_too_long_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    java.chmod(0o700)
    monkeypatch.setattr(broker, "FORMAT_TIMEOUT_S", 0.1)
    jar = Jar(coordinate="org.apache.kafka:kafka_2.13:4.3.0", sha256="")
    new = Broker(
        java=Java(path=java, version="17", bundled=False),
        jars=JarSet(name="kafka", jars=(jar,)),
        folder=tmp_path / "kafka",
        port=1,
        controller_port=2,
    )
    with pytest.raises(StackError, match="could not be prepared") as raised:
        broker.spec(new)
    text = f"{raised.value} {raised.value.why} {raised.value.fix}"
    assert "not done after 0.1 s" in text
    assert f"delete {tmp_path / 'kafka'} and try again" in text
