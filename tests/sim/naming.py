"""Operators who call pipelines otherwise: a name is reserved first, and the rename follows, unless
the ingress that wanted it dies in between.
"""

from collections import Counter

from sim.pipelines import Pipeline
from sim.world import World
from waybill_ingress.core.renames import must_reserve
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.commands import Rename
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.former_names import names_of
from waybill_shared.contract.pipelines import Life
from waybill_shared.contract.words import OperationState

NAMES = ("x", "y")
DIES = 4  # one ingress of so many


def want_name(world: World) -> None:
    """What the others have sent, and no runner has carried out, is not known."""
    check_names(world)
    pipeline = world.some(world.pipelines)
    record = pipeline.newest()
    if record is None or record.desired == "deleted":
        return
    name = world.some((*NAMES, *names_of(record)))
    directory = world.ingress.directory
    directory.follow()
    holder = directory.by_name(DEFAULT_TENANT, name)
    holder = holder or directory.former_holder(DEFAULT_TENANT, name)
    try:
        reserves = must_reserve(record, name, holder)
    except Refusal:
        return
    uid, generation = record.pipeline_uid, record.generation
    if not reserves:
        _rename(world, pipeline, record, name, generation)
        return
    body = Rename(name=name, reserved_for=uid, reserved_in=generation)
    life = directory.life_for(DEFAULT_TENANT, name)
    command = pipeline.command("reserve", name, body, life=life, name=name)
    pipeline.wanted.append((uid, name, command, generation))


def go_on(world: World) -> None:
    """Names that are reserved are given."""
    check_names(world)
    for pipeline in world.pipelines:
        wanted, pipeline.wanted = pipeline.wanted, []
        for uid, name, command, generation in wanted:
            replies = [each.operations.replies.get(command) for each in world.partitions]
            reply = next(filter(None, replies), None)
            if reply is None:
                pipeline.wanted.append((uid, name, command, generation))
            elif reply[0] == OperationState.DONE and world.pick(DIES):
                _rename(world, pipeline, world.newest(uid), name, generation)


def check_names(world: World) -> None:
    """I19: of all pipelines that are not deleted no two have one name."""
    newest = {record.pipeline_uid: record for record in world.records}
    names = Counter(each.name for each in newest.values() if each.desired != "deleted")
    for name, times in names.items():
        if times > 1:
            world.checker.report("I19", f"{times} pipelines are called {name}")


def _rename(
    world: World, pipeline: Pipeline, record: PipelineRecord, name: str, generation: int
) -> None:
    life = Life(uid=record.pipeline_uid, number=record.life)
    if record.desired == "deleted":
        return
    if world.pick(2) or name == record.name:
        body = Rename(name=name, reserved_in=generation)
        pipeline.command("rename", name, body, life=life, name=name)
    else:
        pipeline.shape = pipeline.applied()
        pipeline.command("apply", life=life, name=name, was=(record.name, generation))
