"""When a pipeline with a schedule runs again, also where clocks are changed, and what is wrong with
schedules.
"""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.schedules import ScheduleSettings
from waybill_shared.contract.moments import format_moment

BERLIN = {"timezone": "Europe/Berlin"}
NIGHTLY = {"cron": "30 2 * * *", **BERLIN}
SPRING, AUTUMN = "2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"
"""In Berlin 02:30 does not exist on the next day, and comes twice on the next day."""
SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def schedule(**said: str) -> ScheduleSettings:
    return ScheduleSettings.model_validate(said)


def times(found: ScheduleSettings, after: str, count: int) -> list[str]:
    """As somebody asks who has carried out each time before the next."""
    at: int | None = ms(after)
    seen = list[str]()
    while at is not None and len(seen) < count:
        at = found.next_after(at, at)
        seen.append("" if at is None else format_moment(at).removesuffix(":00.000Z"))
    return seen


def test_a_cron_line_has_the_times_of_its_time_zone() -> None:
    assert times(schedule(cron="0 3 * * *"), "2026-01-01T12:00:00Z", 1) == ["2026-01-02T03:00"]
    berlin = schedule(cron="0 3 * * *", timezone="Europe/Berlin")
    assert times(berlin, "2026-01-01T12:00:00Z", 1) == ["2026-01-02T02:00"]
    assert times(berlin, "2026-07-01T12:00:00Z", 1) == ["2026-07-02T01:00"]


def test_a_time_in_the_hour_that_is_skipped_comes_right_after_it() -> None:
    assert times(schedule(**NIGHTLY), SPRING, 2) == ["2026-03-29T01:00", "2026-03-30T00:30"]


def test_a_time_in_the_doubled_hour_comes_once() -> None:
    assert times(schedule(**NIGHTLY), AUTUMN, 2) == ["2026-10-25T00:30", "2026-10-26T01:30"]


def test_who_asks_in_the_second_pass_of_the_doubled_hour_gets_no_time_that_is_over() -> None:
    """At 02:10, the second time: 02:30 was in the first pass."""
    assert times(schedule(**NIGHTLY), "2026-10-25T01:10:00Z", 1) == ["2026-10-26T01:30"]


@pytest.mark.parametrize("midnight", ["2026-03-29T00:30:00+01:00", "2026-10-25T00:30:00+02:00"])
@pytest.mark.parametrize("said", [{"cron": "30 * * * *"}, {"every": "1 hour"}])
def test_what_comes_each_hour_comes_each_hour_that_passes(
    said: dict[str, str], midnight: str
) -> None:
    found, at = schedule(**said, **BERLIN), ms(midnight)
    for _ in range(5):
        assert found.next_after(at, at) == at + HOUR
        at += HOUR


def test_every_is_counted_from_the_last_time() -> None:
    found = schedule(every="90 seconds")
    assert found.first(7 * SECOND) == 7 * SECOND, "a schedule without startOn begins at once"
    assert found.next_after(7 * SECOND, 7 * SECOND) == 97 * SECOND
    late = found.next_after(500 * SECOND, 7 * SECOND)
    assert late == 547 * SECOND, "times that were missed are one, and the next is on the grid"


def test_every_is_counted_from_its_start() -> None:
    found = schedule(every="1 day", startOn="2026-11-01T03:00:00Z")
    start = ms("2026-11-01T03:00:00Z")
    assert found.first(start - 9 * DAY) == start
    assert found.first(start) == start
    assert found.first(start + 1) == start + DAY
    assert found.next_after(start + 5 * DAY + 1, start + 77) == start + 6 * DAY


def test_a_line_has_no_times_before_its_start_and_after_its_end() -> None:
    said = {"startOn": "2026-11-03", "endOn": "2026-11-05 03:00"}
    found = schedule(cron="0 3 * * *", **said)
    assert times(found, "2026-01-01T00:00:00Z", 4) == [
        "2026-11-03T03:00",
        "2026-11-04T03:00",
        "2026-11-05T03:00",
        "",
    ]


def test_starts_and_ends_without_an_offset_are_in_the_time_zone() -> None:
    found = schedule(every="1 day", startOn="2026-07-01T00:00", **BERLIN)
    assert found.first(0) == ms("2026-06-30T22:00:00Z")


@given(
    now=st.integers(1_600_000_000_000, 2_200_000_000_000),
    line=st.sampled_from(["30 2 * * *", "*/7 * * * *", "0 2,3 * * 0", "59 1-3 25-31 3,10 *"]),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
)
def test_the_next_time_is_always_later(now: int, line: str, zone: str) -> None:
    found = schedule(cron=line, timezone=zone).next_after(now, now)
    assert found is not None
    assert found > now


@given(line=st.text("0123456789*,-/#LW SUNMO", max_size=24))
def test_any_line_has_times_or_is_refused(line: str) -> None:
    try:
        found = schedule(cron=line)
    except ValidationError:
        return
    assert found.next_after(0, 0) is not None


def problem(said: str, trigger: str = "{availableNow: true}") -> Problem:
    text = f"""\
version: 1
name: orders
schedule: {said}
inputs: [{{name: orders, kafka: {{topic: orders.in}}, schema: "order_id BIGINT"}}]
stages:
  - name: load
    trigger: {trigger}
    inputs: [orders]
    sinks: [{{name: lake, iceberg: {{table: raw.orders}}}}]
"""
    with pytest.raises(UserError) as refused:
        read_manifest(text)
    (found,) = refused.value.problems
    assert found.line == 3
    return found


@pytest.mark.parametrize(
    ("said", "path", "message", "hint"),
    [
        ("{}", "", "a schedule needs cron or every", "for example schedule: {cron: 0 3 * * *"),
        ("{cron: 0 3 * * *, every: 1 day}", "", "cron or every, not both", "keep one"),
        ("{cron: 0 3 * *}", "cron", "no cron line of five fields", "minute, hour, day"),
        ("{cron: 0 0 3 * * *}", "cron", "no cron line of five fields", "minute, hour, day"),
        ('{cron: "@daily"}', "cron", "no cron line of five fields", "for example `0 3 * * *`"),
        ("{cron: 0 0 30 2 *}", "cron", "'0 0 30 2 *' never comes", "for example `0 3 * * *`"),
        ("{cron: 0 25 * * *}", "cron", "never comes: bad hour", "for example `0 3 * * *`"),
        ("{every: 9 seconds}", "every", "too often: 10 seconds are the least", "every: 10 sec"),
        ("{every: 10s}", "every", "not a time in seconds, minutes", "every: 15 minutes"),
        ("{every: 1 day, timezone: Europe/Berln}", "timezone", "no time zone", "Europe/Berlin"),
        ("{every: 1 day, timezone: ../../etc}", "timezone", "no time zone", "Europe/Berlin"),
        ("{every: 1 day, startOn: soon}", "startOn", "not a date or a time", 'startOn: "2026'),
        ('{every: 1 day, endOn: "0001-01-01"}', "endOn", "not a date or a time", 'endOn: "2026'),
        (
            '{every: 1 day, startOn: "2026-12-02", endOn: "2026-12-01"}',
            "",
            "endOn 2026-12-01 is before startOn 2026-12-02",
            "write a later endOn",
        ),
        (
            '{cron: 0 3 29 2 *, startOn: "2026-03-01", endOn: "2027-03-01"}',
            "",
            "no time of '0 3 29 2 *' lies between",
            "write a later endOn",
        ),
        ("{every: 1 day, concurrency: allow}", "concurrency", "'allow'", "forbid, replace"),
        ("{cron: 0 3 * * *, start: x}", "start", "unknown key 'start'", "startOn"),
    ],
)
def test_a_wrong_schedule_is_refused_with_what_would_work(
    said: str, path: str, message: str, hint: str
) -> None:
    found = problem(said)
    assert found.path == f"schedule.{path}".rstrip(".")
    assert message in found.message
    assert hint in found.hint


def test_a_schedule_needs_a_pipeline_that_ends() -> None:
    found = problem("{every: 1 day}", "{processingTime: 5 seconds}")
    assert found.path == "schedule"
    assert "the stages of this pipeline never end" in found.message
    assert found.hint == "write trigger: {availableNow: true} in each stage, or leave out schedule"
