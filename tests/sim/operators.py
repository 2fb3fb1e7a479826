"""What operators do: commands, and changes of the manifest. Some of these the product refuses.

A change is made to the newest manifest that was not refused.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from sim.graves import MOODS
from sim.pipelines import Pipeline
from sim.shapes import TIMETABLES, Shape, Stage, name_of, place_of_sink, topic_of_input
from sim.sinks import BUDGET
from sim.sizes import CHOICES
from sim.world import World
from waybill_shared.contract.beginnings import InputOffset
from waybill_shared.contract.commands import PutDeadLetter, Rescale, Restart, Start, StopMode


def _of_some(operator: Callable[[World, Pipeline], None]) -> Callable[[World], None]:
    @wraps(operator)
    def move(world: World) -> None:
        operator(world, world.some(world.pipelines))

    return move


@_of_some
def stop(world: World, pipeline: Pipeline) -> None:
    pipeline.command("stop")


@_of_some
def start(world: World, pipeline: Pipeline) -> None:
    pipeline.command("start")


@_of_some
def start_stage(world: World, pipeline: Pipeline) -> None:
    record = pipeline.newest()
    if record is not None and record.stopped_stages:
        name = world.some(record.stopped_stages).stage
        pipeline.command("start", f"stage {name}", Start(stage=name))


@_of_some
def pause(world: World, pipeline: Pipeline) -> None:
    pipeline.command("pause")


@_of_some
def resume(world: World, pipeline: Pipeline) -> None:
    pipeline.command("resume")


@_of_some
def restart(world: World, pipeline: Pipeline) -> None:
    pipeline.command("restart")


@_of_some
def restart_from(world: World, pipeline: Pipeline) -> None:
    pipeline.command("restart", world.dice.choice(("earliest", "latest")))


@_of_some
def rewind(world: World, pipeline: Pipeline) -> None:
    """A stage reads some of its inputs again, from anywhere between their ends."""
    record = pipeline.newest()
    if record is None or record.desired == "deleted":
        return
    stage = world.some(record.stages)
    found = [(i, world.cluster.topics.get(i.topic)) for i in stage.inputs]
    offsets = tuple(
        InputOffset(topic=i.topic, partition=number, offset=world.dice.randint(first, end))
        for i, topic in found
        if topic is not None and topic.topic_id == i.topic_id
        for number, partition in enumerate(topic.partitions)
        for first in [max(partition.start, i.bases.get((i.topic_id, number), 0))]
        for end in [partition.end()]
        if first <= end and world.pick(3)
    )
    if offsets:
        body = Restart(offsets=offsets, stage=stage.name, confirmed=True)
        pipeline.command("rewind", f"{stage.name} {offsets}", body)


@_of_some
def put(world: World, pipeline: Pipeline) -> None:
    """A record goes to its dead-letter topic: one that was read, or one that will be."""
    record = pipeline.newest()
    if record is None or record.desired == "deleted":
        return
    source = world.some([i for stage in record.stages for i in stage.inputs])
    topic = world.cluster.topics.get(source.topic)
    if topic is None or topic.topic_id != source.topic_id:
        return
    partition = world.pick(len(topic.partitions))
    end = topic.partitions[partition].end()
    if end:
        offset = max(0, end - 1 - world.pick(4))
        asked = PutDeadLetter(topic=source.topic, partition=partition, offset=offset, reason="")
        body = Restart(mode=StopMode.FORCE, dead_letter=asked)
        pipeline.command("put", f"{source.topic}[{partition}]@{offset}", body)


@_of_some
def replay(world: World, pipeline: Pipeline) -> None:
    """Some of what died comes back."""
    record = pipeline.newest()
    if record is not None and record.desired != "deleted":
        world.replay_tokens.ask_for(record)


def ask_replays(world: World) -> None:
    world.replay_tokens.ask_some()


@_of_some
def rescale(world: World, pipeline: Pipeline) -> None:
    size = world.some(CHOICES)
    pipeline.command("rescale", f"to {size}", Rescale(parallelism=size))


@_of_some
def reschedule(world: World, pipeline: Pipeline) -> None:
    pipeline.change(replace(pipeline.applied(), schedule=world.some(TIMETABLES)))


@_of_some
def delete(world: World, pipeline: Pipeline) -> None:
    world.disturbed = True
    pipeline.command("delete")


@_of_some
def apply(world: World, pipeline: Pipeline) -> None:
    pipeline.command("apply")


@_of_some
def add_stage(world: World, pipeline: Pipeline) -> None:
    shape = pipeline.applied()
    sources = [*map(name_of, shape.inputs), *_topics(shape)]
    number = world.commanded()  # a name that was never given before
    stage = Stage(f"more{number}", (world.some(sources),), (f"lake_m{number}",))
    pipeline.change(shape.with_stage(stage))


@_of_some
def add_sink(world: World, pipeline: Pipeline) -> None:
    shape, number = pipeline.applied(), world.commanded()
    name = world.some((f"lake_s{number}", f"ts{number}"))
    pipeline.change(shape.with_sink(world.some(shape.stages).name, name))


@_of_some
def remove_stage(world: World, pipeline: Pipeline) -> None:
    """One that nobody reads from."""
    shape = pipeline.applied()
    ends = [s for s in shape.stages if not shape.read().intersection(map(name_of, s.sinks))]
    if len(shape.stages) > 1 and ends:
        stage = world.some(ends)
        pipeline.removed.append(stage)
        pipeline.change(shape.without(stage.name))


@_of_some
def remove_sink(world: World, pipeline: Pipeline) -> None:
    """One that nobody reads, and not the last of its stage."""
    shape = pipeline.applied()
    several = [stage for stage in shape.stages if len(stage.sinks) > 1]
    ends = [(s, k) for s in several for k in s.sinks if name_of(k) not in shape.read()]
    if ends:
        stage, sink = world.some(ends)
        pipeline.removed.append(replace(stage, sinks=(sink,)))
        pipeline.change(shape.without_sink(sink))


@_of_some
def return_stage(world: World, pipeline: Pipeline) -> None:
    """Under its old name; it writes where it wrote, or elsewhere."""
    shape = pipeline.applied()
    here = {stage.name for stage in shape.stages}
    if gone := [stage for stage in pipeline.removed if stage.name not in here]:
        stage = world.some(gone)
        sinks = tuple(_elsewhere(world, sink) for sink in stage.sinks)
        pipeline.change(shape.with_stage(replace(stage, sinks=sinks)))


@_of_some
def return_sink(world: World, pipeline: Pipeline) -> None:
    shape = pipeline.applied()
    here = {stage.name for stage in shape.stages}
    taken = {name_of(sink) for sink in shape.sinks()}
    gone = [
        (stage.name, sink)
        for stage in pipeline.removed
        for sink in stage.sinks
        if stage.name in here and name_of(sink) not in taken
    ]
    if gone:
        stage_name, sink = world.some(gone)
        pipeline.change(shape.with_sink(stage_name, _elsewhere(world, sink)))


@_of_some
def rename_input(world: World, pipeline: Pipeline) -> None:
    """The same topic under another name."""
    shape = pipeline.applied()
    given = world.some(shape.inputs)
    name, new = name_of(given), f"in{world.commanded()}"
    renamed = shape.without_input(given).with_input(f"{new}={topic_of_input(given)}")
    pipeline.change(renamed.reading(name, new))


@_of_some
def remove_input(world: World, pipeline: Pipeline) -> None:
    """With the stages that read nothing else, and nobody reads them."""
    shape = pipeline.applied()
    given = world.some(shape.inputs)
    gone = [s for s in shape.stages if s.inputs == (name_of(given),)]
    after = shape.without_input(given)
    for stage in gone:
        after = after.without(stage.name)
    if len(shape.inputs) > 1 and after.stages:
        pipeline.change(after)


@_of_some
def turn_inner(world: World, pipeline: Pipeline) -> None:
    """A stage is put in front of a root input."""
    shape = pipeline.applied()
    given, number = world.some(shape.inputs), world.commanded()
    front = Stage(f"front{number}", (f"z{number}",), (f"tz{number}={topic_of_input(given)}",))
    after = shape.without_input(given).with_input(f"z{number}").with_stage(front)
    pipeline.change(after.reading(name_of(given), f"tz{number}"))


@_of_some
def turn_root(world: World, pipeline: Pipeline) -> None:
    """A stage is removed, and what it wrote is read as an input of the pipeline."""
    shape = pipeline.applied()
    fronts = [s for s in shape.stages if shape.read().intersection(map(name_of, s.sinks))]
    if not fronts:
        return
    stage = world.some(fronts)
    after = shape.without(stage.name)
    for sink in (k for k in stage.sinks if name_of(k) in shape.read()):
        new = f"r{name_of(sink)}"
        after = after.with_input(f"{new}={place_of_sink(sink)}").reading(name_of(sink), new)
    pipeline.change(after)


@_of_some
def rename_sink(world: World, pipeline: Pipeline) -> None:
    """On the same table or topic: it would not know which batch its predecessor wrote last."""
    shape = pipeline.applied()
    if unread := [k for k in shape.sinks() if name_of(k) not in shape.read()]:
        sink = world.some(unread)
        new = f"{name_of(sink)}r={place_of_sink(sink)}"
        pipeline.change(shape.renamed_sink(sink, new))


@_of_some
def rename_stage(world: World, pipeline: Pipeline) -> None:
    shape = pipeline.applied()
    stage = world.some(shape.stages)
    pipeline.removed.append(stage)
    pipeline.change(shape.renamed_stage(stage.name, f"{stage.name}r"))


@_of_some
def call_sink_otherwise(world: World, pipeline: Pipeline) -> None:
    """With `was`: it goes on."""
    shape = pipeline.applied()
    sink = world.some(shape.sinks())
    pipeline.change(shape.with_sink_called(sink, f"{name_of(sink)}n{world.commanded()}"))


@_of_some
def call_stage_otherwise(world: World, pipeline: Pipeline) -> None:
    """With `was`: it goes on, and does what its first name says."""
    shape = pipeline.applied()
    stage = world.some(shape.stages)
    pipeline.change(shape.with_stage_called(stage.name, f"m{world.commanded()}"))


@_of_some
def apply_earlier(world: World, pipeline: Pipeline) -> None:
    """The file of some time before."""
    if earlier := pipeline.earlier():
        pipeline.change(world.some(earlier))


RENAMES = (
    (1, rename_sink),
    (1, rename_stage),
    (2, call_sink_otherwise),
    (2, call_stage_otherwise),
    (1, apply_earlier),
)


def _topics(shape: Shape) -> list[str]:
    return [name for name in map(name_of, shape.sinks()) if name.startswith("t")]


def _elsewhere(world: World, sink: str) -> str:
    if world.pick(2):
        return sink
    name, number = name_of(sink), world.commanded()
    return f"{name}=raw.{name}{number}" if name.startswith("lake") else f"{name}={name}.{number}"


def change_mood(world: World) -> None:
    """As by another manifest or constraint: other records die from now on, or none."""
    world.storage.mood = world.pick(MOODS)
    world.say(f"the mood is {world.storage.mood}")


def tighten_budget(world: World) -> None:
    """Few records may die after a start, so that stages stop by themselves."""
    world.storage.budget = world.some((1, 1, 2, 4, BUDGET))
    world.say(f"the budget is {world.storage.budget}")
