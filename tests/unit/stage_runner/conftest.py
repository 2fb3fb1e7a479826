"""A runner with all that is around it in memory, and one pipeline that it decides about."""

import pytest

from builders import make_record
from unit.stage_runner.decisions import Decisions
from unit.stage_runner.fakes import World
from waybill_stage_runner.core.pipelines.events import DriverRuns


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def starting() -> Decisions:
    """A pipeline that command c1 has started."""
    record = make_record()
    pipeline = Decisions(record)
    pipeline.want(record, "c1")
    return pipeline


@pytest.fixture
def running(starting: Decisions) -> Decisions:
    starting.on(DriverRuns())
    return starting
