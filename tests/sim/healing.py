"""The end of a scenario: the faults stop, operators do what the errors told them to do, and then
every token must come to its end, and every count must be right."""

from typing import Final

from sim import moves
from sim.endings import End
from sim.pipelines import Pipeline
from sim.sinks import BUDGET
from sim.world import Rates, World
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle import Phase
from waybill_spark.tracking.opening import DAMAGED

ROUNDS: Final = 60
LOOKS: Final = 5


def heal(world: World, wanted: str | None) -> None:
    world.say("--- calm ---")
    _end_faults(world)
    for _ in range(ROUNDS):
        said = len(world.trace)
        _round(world)
        quiet = len(world.trace) == said
        if world.checker.found(wanted) or (quiet and not _busy(world) and _all_ended(world)):
            break
        if quiet and not world.alive():
            world.schedules.await_next()
    world.checker.settled = True
    world.schedules.check()
    _all_ended(world)
    world.replay_tokens.check_end()
    _tell_waiters(world)
    End(world).check()


def _tell_waiters(world: World) -> None:
    """Nothing happens any more: a few looks must be enough."""
    for _ in range(LOOKS):
        world.clock.now += 1_000
        world.waiters.turn_all()
    world.waiters.ask()
    world.waiters.end()


def _end_faults(world: World) -> None:
    world.rates = Rates()
    world.patient = True
    for clock in world.clocks.each():
        clock.ahead_ms = 0
    world.ingress.offsets_lost = 0.0
    for hosts in world.partitions:
        hosts.reach_runners()
    world.storage.calm = True
    world.storage.budget = BUDGET
    world.redis.away = False
    world.storage.end_strangers()
    world.cluster.write_markers()
    world.storage.abort_unowned()
    for fact in world.delayed:
        world.append(fact)
    world.delayed.clear()
    world.moves = lambda: None


def _round(world: World) -> None:
    world.clock.now += 3_000
    for hosts in 3 * world.partitions:
        hosts.run_runner()
    _operate(world)
    for driver in world.alive():
        driver.turn()
        for _ in range(3):
            driver.work()
        driver.repeat()
    for hosts in world.partitions:
        hosts.run_tracker(lambda tracker: tracker.feed(1_000))
        hosts.run_tracker(lambda tracker: tracker.confirm())
        hosts.run_tracker(lambda tracker: tracker.flush())
    moves.follow(world)
    world.waiters.turn_all()
    world.waiters.ask()
    for issued in world.unfinished():
        world.ask(issued)


def _all_ended(world: World) -> bool:
    """Also those that had their end before are asked again: it must still be told."""
    ended = not world.unfinished() and sum(map(world.ask, world.issued)) == len(world.issued)
    return world.replay_tokens.all_ended() and ended


def _busy(world: World) -> bool:
    """Whether a command or an order has not had its effect yet, a pipeline does not run that
    should, or one that ends by itself has not ended: its later stages begin after rounds without a
    word.
    """
    if _waiting(world) or any(driver.has_orders for driver in world.alive()):
        return True
    newest = {record.pipeline_uid: record for record in world.records}
    return any(_is_busy(world, record) for record in newest.values() if record.wants_run)


def _is_busy(world: World, record: PipelineRecord) -> bool:
    runs = bool(world.alive(record.pipeline_uid))
    if record.manifest.model.ends:
        return runs or world.runs.has_unread(record) or not record.has_finished
    return not (record.has_finished or runs)


def _waiting(world: World) -> bool:
    operations = [hosts.operations for hosts in world.partitions]
    return any(len(each.commands) > each.committed for each in operations)


def _operate(world: World) -> None:
    """What an operator does about a pipeline that stands: what the error says, else a start."""
    if _waiting(world):
        return
    for pipeline in world.pipelines:
        record = pipeline.newest()
        if record is None:
            pipeline.command("apply")
        elif record.desired != "deleted":
            _mend(world, pipeline, record)


def _mend(world: World, pipeline: Pipeline, record: PipelineRecord) -> None:
    events = [
        event
        for event in world.hosts_of(record.pipeline_uid).topics.lifecycle
        if event.pipeline_uid == record.pipeline_uid and event.kind == "transition"
    ]
    newest = events[-1] if events else None
    if newest is None:
        return
    text = f"{newest.error.message} {newest.error.hint}" if newest.error is not None else ""
    text += "".join(f" {each.message} {each.hint}" for each in record.stopped_stages)
    if newest.phase in {Phase.FAILED, Phase.STOPPED}:
        world.say(f"it stands: {text}")
        if DAMAGED in text:
            world.disturbed = True  # what was not processed never comes
            pipeline.command("delete")
            return
        start_from = "earliest" if "--from" in text else None
        pipeline.command("restart" if start_from else "start", start_from)
    elif (
        record.next_run_at is None
        and newest.phase == Phase.FINISHED
        and world.runs.has_unread(record)
    ):
        pipeline.command("start")
    elif record.stopped_stages:
        _start_stopped(world, pipeline, record)
    elif record.desired == "paused":
        pipeline.command("resume")


def _start_stopped(world: World, pipeline: Pipeline, record: PipelineRecord) -> None:
    """Some stages have failed by themselves: what the record says, else a start."""
    text = " ".join(f"{each.message} {each.hint}" for each in record.stopped_stages)
    world.say(f"stages stand: {text}")
    if DAMAGED in text:
        world.disturbed = True
        pipeline.command("delete")
    else:
        pipeline.command("start")
