"""The newest lines of a driver's log, for whoever asks the runner that has the pipeline."""

import json
from dataclasses import replace
from pathlib import Path

from unit.stage_runner.fakes import UID, World, command, running
from waybill_shared.contract.commands import Logs
from waybill_shared.contract.events import Command
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.adapters.driver_log import BYTES_MAX, LINE_MAX, newest_lines


def question(uid: str = UID, tenant: str = "default") -> Command:
    asked = replace(command(2, "start"), tenant=tenant, body=Logs(about=uid, lines=2))
    return replace(asked, id="q2", pipeline_uid="f" * 32)


def test_it_is_answered_at_once_and_nothing_changes() -> None:
    world = World()
    runner = running(world)
    records = [*world.records]
    runner.handle(question(), 2)
    runner.act()
    assert world.answers[-1] == ("q2", "done")
    told = json.loads(world.results[-1] or "")
    assert told == {"pipeline": "orders", "lines": [f"{UID} 0", f"{UID} 1"]}
    assert (world.records, runner.open_commands()) == (records, set())


def test_the_log_of_a_pipeline_that_is_not_there_or_of_others_is_refused() -> None:
    world = World()
    runner = running(world)
    for asked in (question("another"), question(tenant="another")):
        runner.handle(asked, 2)
        runner.act()
        assert world.answers[-1] == ("q2", "failed")
        assert world.reasons[-1] == Slug.PIPELINE_GONE


def test_the_end_of_a_log_is_read_without_the_rest(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    assert newest_lines(log, 3) == []
    log.write_text("a\nb\nc\n")
    assert newest_lines(log, 2) == ["b", "c"]
    assert newest_lines(log, 9) == ["a", "b", "c"]
    log.write_text("x" * BYTES_MAX + "\nwhole\n")
    assert newest_lines(log, 9) == ["whole"]
    log.write_bytes(b"y" * (LINE_MAX + 5) + b"\n\xff\n")
    long, broken = newest_lines(log, 9)
    assert (len(long), long[-1], broken) == (LINE_MAX + 1, "…", "\ufffd")
