"""What a service shows of itself."""

from prometheus_client.parser import text_string_to_metric_families

from shared import metrics
from shared.version import VERSION


def samples(
    service: str, readiness: dict[str, str] | None = None
) -> dict[str, list[dict[str, str]]]:
    """Labels of all series, by name."""
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(
        metrics.text_of(service, readiness or {}).decode()
    ):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_a_service_shows_its_own_metrics_and_those_of_its_process() -> None:
    shown = samples("ingress")

    assert shown["waybill_build_info"] == [{"version": VERSION}]
    assert "process_resident_memory_bytes" in shown
    assert "waybill_waiters" not in shown
    assert "waybill_slot_rebuilds_total" in samples("token_tracker")


def test_readiness_is_shown_by_check() -> None:
    readiness = {"kafka": "ok", "redis": "connection refused"}
    text = metrics.text_of("status", readiness).decode()

    assert 'waybill_ready{check="kafka"} 1.0' in text
    assert 'waybill_ready{check="redis"} 0.0' in text


def test_a_gauge_shows_no_more_what_was_not_said_again() -> None:
    metrics.show("waybill_driver_attempts", {("orders",): 2, ("gone",): 1})
    metrics.show("waybill_driver_attempts", {("orders",): 3})

    assert samples("stage_runner")["waybill_driver_attempts"] == [{"pipeline": "orders"}]


def test_nothing_is_shown_of_a_pipeline_that_is_forgotten() -> None:
    for pipeline in ("kept", "gone"):
        labels = {"pipeline": pipeline, "reason": "started"}
        metrics.count("waybill_driver_starts_total", 1, **labels)

    metrics.forget("gone")

    shown = samples("stage_runner")["waybill_driver_starts_total"]
    assert "kept" in {labels["pipeline"] for labels in shown}
    assert "gone" not in {labels["pipeline"] for labels in shown}
