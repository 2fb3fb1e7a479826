"""Liveness by a beat, readiness by checks."""

import time

from waybill_shared.process.health import BEAT_AGE_S_MAX, Health, ready


def test_process_is_alive_as_long_as_its_loop_beats() -> None:
    assert Health(_beat_at=time.monotonic() - BEAT_AGE_S_MAX / 2).alive()
    process = Health(_beat_at=time.monotonic() - BEAT_AGE_S_MAX)
    assert not process.alive()
    process.beat()
    assert process.alive()


def test_readiness_names_what_is_wrong() -> None:
    process = Health({"kafka": lambda: None, "redis": lambda: "connection refused"})
    assert process.readiness() == {"kafka": "ok", "redis": "connection refused"}
    assert not ready(process.readiness())


def test_all_checks_must_pass() -> None:
    assert ready(Health({"kafka": lambda: None}).readiness())
    assert ready(Health().readiness())
