"""Changes that a runner checks before it carries them out."""

from dataclasses import replace

from unit.stage_runner.fakes import EXAMPLE, World
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pool.model import CheckFailure

CHANGED = EXAMPLE.replace("0.2", "0.3")
OTHER_SINK = EXAMPLE.replace("topic: orders.enriched", "topic: orders.taxed")
PROBLEM = Problem(message="no column discount", line=13, column=9, path="stages.0", hint="amount?")


def take(runner: Runner, *commands: Command) -> None:
    """As they come from Kafka; the number in its id is the offset of each."""
    for each in commands:
        runner.handle(each, int(each.id.removeprefix("c")))
        runner.act()


def go_on(runner: Runner) -> None:
    """Carry out what has waited, each once."""
    carried_out: list[str] = []
    while (freed := runner.next_ready()) is not None:
        assert freed[1].id not in carried_out
        carried_out.append(freed[1].id)
        runner.handle(freed[1], freed[0])
        runner.act()


def check_ends(
    runner: Runner, check_id: str, *problems: Problem, failed: CheckFailure | None = None
) -> None:
    runner.finish_check(Checked(check_id=check_id, problems=problems, failed=failed))
    runner.act()
    go_on(runner)


def elsewhere(command: Command) -> Command:
    """The same of another pipeline."""
    return replace(command, pipeline_uid="other")


def made(world: World) -> tuple[object, ...]:
    """All that a command has an effect on, apart from its answer."""
    told = (tuple(world.records), tuple(world.definitions), tuple(world.phases), world.claims)
    runs = (tuple(world.started), tuple(world.closing), tuple(world.stopped))
    return *told, *runs, dict(world.living), dict(world.topics)
