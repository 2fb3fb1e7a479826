"""What the stack tells, as a line and as JSON."""

from waybill_local.reports import Report, ReportKind, from_json, line, to_json

READY = Report(
    kind=ReportKind.READY, name="kafka", version="4.3.1", address="127.0.0.1:9092", seconds=2.41
)


def test_ready_line_names_address_and_time() -> None:
    assert line(READY).split() == ["kafka", "4.3.1", "127.0.0.1:9092", "ready", "2.4", "s"]


def test_report_survives_the_way_to_whoever_follows() -> None:
    assert from_json(to_json(READY)) == READY
