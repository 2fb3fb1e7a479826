"""How many tasks of a pipeline run at once: who says it, and the limit of the operator."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import applied
from unit.stage_runner.fakes import (
    EXAMPLE,
    World,
    carry_out,
    command,
    pass_check,
    receive,
)
from waybill_shared.contract.commands import Validate
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_stage_runner.adapters.driver_config import cores_of, driver_home
from waybill_stage_runner.app.admission import Admission
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverRuns
from waybill_stage_runner.core.pipelines.parallelism import CoreLimits, parallelism_of
from waybill_stage_runner.core.pipelines.states import MessageOrigin, PipelineState
from waybill_stage_runner.settings import Settings

FOUR = EXAMPLE.replace("version: 1", "version: 1\nparallelism: 4", 1)
LIMITS = CoreLimits(usual=2, most=4)


def runner_with(world: World, limits: CoreLimits = LIMITS) -> Runner:
    return Runner(world, world, world, world, admission=Admission(limits))


def shown(runner: Runner) -> int | None:
    (state,) = runner.states
    return state.event("transition", None, MessageOrigin(at=0, now=0)).parallelism


def settings(**given: object) -> Settings:
    return Settings.model_validate({"stage_runner_java": Path("java"), **given})


def test_without_a_number_a_pipeline_gets_what_the_operator_says() -> None:
    assert LIMITS.allow(None) == 2
    assert CoreLimits(usual=8, most=4).allow(None) == 4


def test_limit_that_was_lowered_counts_for_what_is_applied_already() -> None:
    assert CoreLimits(usual=1, most=2).allow(4) == 2


@pytest.mark.parametrize(
    ("given", "usual", "most"),
    [
        ({"spark_master": "local[3]"}, 3, 6),
        ({"spark_master": "local[12]"}, 12, 12),
        ({"spark_master": "local"}, 1, 6),
        ({"spark_master": "local[*]"}, 6, 6),
        ({"spark_master": "local[3]", "stage_runner_parallelism_max": 4}, 3, 4),
        ({"spark_master": "spark://h:7077"}, 2, 2),
        ({"spark_master": "spark://h:7077", "spark_cores_max": 5}, 5, 5),
        ({"spark_master": "spark://h:7077", "stage_runner_parallelism_max": 9}, 2, 9),
    ],
)
def test_limits_follow_from_the_settings(
    given: dict[str, object], usual: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert settings(**given).core_limits == CoreLimits(usual=usual, most=most)


@pytest.mark.parametrize(
    ("given", "cores", "master", "cores_max"),
    [
        ({"spark_master": "local[2]"}, None, "local[2]", 2),
        ({"spark_master": "local[2]"}, 4, "local[4]", 4),
        ({"spark_master": "local[*]"}, None, "local[*]", 6),
        ({"spark_master": "local[3]", "stage_runner_parallelism_max": 1}, None, "local[1]", 1),
        ({"spark_master": "spark://h:1"}, None, "spark://h:1", 2),
        ({"spark_master": "spark://h:1"}, 4, "spark://h:1", 4),
    ],
)
def test_driver_gets_its_cores_from_spark(
    given: dict[str, object],
    cores: int | None,
    master: str,
    cores_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    spark = driver_home(settings(**given), Path("folder"), spark=True, cores=cores).spark
    assert spark is not None
    assert (spark.master, spark.cores_max) == (master, cores_max)


def test_driver_with_the_usual_number_is_a_spare() -> None:
    given = settings(spark_master="local[2]", stage_runner_parallelism_max=4)
    assert [cores_of(given, wanted) for wanted in (None, 2, 3, 9)] == [None, None, 3, 4]


def test_run_and_check_get_the_number_of_the_manifest() -> None:
    world = World()
    runner = runner_with(world)
    carry_out(runner, command(1, manifest=FOUR), 1)
    receive(runner, 1, DriverRuns())
    assert (world.sizes, parallelism_of(world.specs[0])) == ([4], 4)
    assert shown(runner) == 4


def test_more_than_the_operator_allows_is_refused_with_its_place() -> None:
    world = World()
    runner = runner_with(world, CoreLimits(usual=2, most=3))
    carry_out(runner, command(1, manifest=FOUR), 1)
    assert world.answers == [("c1", OperationState.FAILED)]
    assert world.reasons == [Slug.INVALID]
    (problem,) = world.problems
    assert (problem.path, problem.line) == (
        "parallelism",
        FOUR.splitlines().index("parallelism: 4") + 1,
    )
    assert "at most 3 tasks" in problem.message
    assert (world.records, world.started) == ([], [])


def test_validation_finds_it_too() -> None:
    world = World()
    runner = runner_with(world, CoreLimits(usual=2, most=3))
    asked = replace(command(1), body=Validate(manifest=applied(FOUR)))
    runner.handle(asked, 1)
    pass_check(runner, asked)
    runner.act()
    (result,) = world.results
    assert result is not None
    assert "at most 3 tasks" in result


def test_manifest_that_is_applied_again_unchanged_is_not_refused_for_a_lower_limit() -> None:
    earlier = World()
    carry_out(runner_with(earlier), command(1, manifest=FOUR), 1)
    world = World(topics=earlier.topics)
    runner = runner_with(world, CoreLimits(usual=2, most=3))
    runner.adopt(earlier.records[-1])
    carry_out(runner, command(2, manifest=FOUR), 2)
    receive(runner, 1, DriverRuns())
    assert (world.answers, world.problems) == ([("c2", OperationState.DONE)], [])
    assert shown(runner) == 3


def test_events_say_the_number_of_the_run_until_it_has_ended() -> None:
    world = World()
    runner = runner_with(world)
    carry_out(runner, command(1, manifest=FOUR), 1)
    receive(runner, 1, DriverRuns())
    carry_out(runner, command(2), 2)
    assert shown(runner) == 4, "its run ends"
    receive(runner, 1, DriverEnded(exit_code=0))
    assert shown(runner) == 2


def test_claim_does_not_say_what_it_does_not_know() -> None:
    world = World()
    carry_out(runner_with(world), command(1, manifest=FOUR), 1)
    claim = PipelineState(record=world.records[0])
    assert claim.event("claim", None, MessageOrigin(at=0, now=0)).parallelism is None
