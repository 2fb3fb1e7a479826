"""What a service shows of itself."""

from scraping import Scrape, read_scrape
from waybill_shared.contract.version import VERSION
from waybill_shared.process import metrics


def shown(service: str) -> Scrape:
    return read_scrape(metrics.text_of(service, {}).decode())


def test_a_service_shows_its_own_metrics_and_those_of_its_process() -> None:
    names = shown("ingress").names()

    assert shown("ingress").value("waybill_build_info", version=VERSION) == 1
    assert "process_resident_memory_bytes" in names
    assert "waybill_waiters" not in names
    assert "waybill_slot_rebuilds_total" in shown("token_tracker").names()


def test_readiness_is_shown_by_check() -> None:
    readiness = {"kafka": "ok", "redis": "connection refused"}
    text = metrics.text_of("status", readiness).decode()

    assert 'waybill_ready{check="kafka"} 1.0' in text
    assert 'waybill_ready{check="redis"} 0.0' in text


def test_a_gauge_shows_no_more_what_was_not_said_again() -> None:
    metrics.show("waybill_driver_attempts", {("orders",): 2, ("gone",): 1})
    metrics.show("waybill_driver_attempts", {("orders",): 3})

    assert shown("stage_runner").labels("waybill_driver_attempts") == [{"pipeline": "orders"}]


def test_nothing_is_shown_of_a_pipeline_that_is_forgotten() -> None:
    for pipeline in ("kept", "gone"):
        labels = {"pipeline": pipeline, "reason": "started"}
        metrics.count("waybill_driver_starts_total", 1, **labels)

    metrics.forget("gone")

    assert shown("stage_runner").names(pipeline="kept")
    assert not shown("stage_runner").names(pipeline="gone")
