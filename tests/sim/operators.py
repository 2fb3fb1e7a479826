"""What operators do: commands, and changes of the manifest. Some of these the product refuses.

A change is made to the newest manifest that was not refused.
"""

from dataclasses import replace

from sim.shapes import Shape, Stage, name_of, place_of_sink, topic_of_input
from sim.world import World


def stop(world: World) -> None:
    world.command("stop")


def start(world: World) -> None:
    world.command("start")


def restart(world: World) -> None:
    world.command("restart")


def restart_from(world: World) -> None:
    world.command("restart", **{"from": world.dice.choice(("earliest", "latest"))})


def delete(world: World) -> None:
    world.disturbed = True
    world.command("delete")


def apply(world: World) -> None:
    world.command("apply")


def add_stage(world: World) -> None:
    shape = world.applied()
    sources = [*map(name_of, shape.inputs), *_topics(shape)]
    number = len(world.operations.commands)  # a name that was never given before
    stage = Stage(f"more{number}", (world.some(sources),), (f"lake_m{number}",))
    _change(world, shape.with_stage(stage))


def add_sink(world: World) -> None:
    shape, number = world.applied(), len(world.operations.commands)
    name = world.some((f"lake_s{number}", f"ts{number}"))
    _change(world, shape.with_sink(world.some(shape.stages).name, name))


def remove_stage(world: World) -> None:
    """One that nobody reads from."""
    shape = world.applied()
    ends = [s for s in shape.stages if not shape.read().intersection(map(name_of, s.sinks))]
    if len(shape.stages) > 1 and ends:
        stage = world.some(ends)
        world.removed.append(stage)
        _change(world, shape.without(stage.name))


def remove_sink(world: World) -> None:
    """One that nobody reads; never the first, so that the others always know where it stood."""
    shape = world.applied()
    ends = [(s, k) for s in shape.stages for k in s.sinks[1:] if name_of(k) not in shape.read()]
    if ends:
        stage, sink = world.some(ends)
        world.removed.append(replace(stage, sinks=(sink,)))
        _change(world, shape.without_sink(sink))


def return_stage(world: World) -> None:
    """Under its old name; it writes where it wrote, or elsewhere."""
    shape = world.applied()
    here = {stage.name for stage in shape.stages}
    if gone := [stage for stage in world.removed if stage.name not in here]:
        stage = world.some(gone)
        sinks = tuple(_elsewhere(world, sink) for sink in stage.sinks)
        _change(world, shape.with_stage(replace(stage, sinks=sinks)))


def return_sink(world: World) -> None:
    shape = world.applied()
    here = {stage.name for stage in shape.stages}
    taken = {name_of(sink) for sink in shape.sinks()}
    gone = [
        (stage.name, sink)
        for stage in world.removed
        for sink in stage.sinks
        if stage.name in here and name_of(sink) not in taken
    ]
    if gone:
        stage_name, sink = world.some(gone)
        _change(world, shape.with_sink(stage_name, _elsewhere(world, sink)))


def rename_input(world: World) -> None:
    """The same topic under another name."""
    shape = world.applied()
    given = world.some(shape.inputs)
    name, new = name_of(given), f"in{len(world.operations.commands)}"
    renamed = shape.without_input(given).with_input(f"{new}={topic_of_input(given)}")
    _change(world, renamed.reading(name, new))


def remove_input(world: World) -> None:
    """With the stages that read nothing else, and nobody reads them."""
    shape = world.applied()
    given = world.some(shape.inputs)
    gone = [s for s in shape.stages if s.inputs == (name_of(given),)]
    after = shape.without_input(given)
    for stage in gone:
        after = after.without(stage.name)
    if len(shape.inputs) > 1 and after.stages:
        _change(world, after)


def turn_inner(world: World) -> None:
    """A stage is put in front of a root input."""
    shape = world.applied()
    given, number = world.some(shape.inputs), len(world.operations.commands)
    front = Stage(f"front{number}", (f"z{number}",), (f"tz{number}={topic_of_input(given)}",))
    after = shape.without_input(given).with_input(f"z{number}").with_stage(front)
    _change(world, after.reading(name_of(given), f"tz{number}"))


def turn_root(world: World) -> None:
    """A stage is removed, and what it wrote is read as an input of the pipeline."""
    shape = world.applied()
    fronts = [s for s in shape.stages if shape.read().intersection(map(name_of, s.sinks))]
    if not fronts:
        return
    stage = world.some(fronts)
    after = shape.without(stage.name)
    for sink in (k for k in stage.sinks if name_of(k) in shape.read()):
        new = f"r{name_of(sink)}"
        after = after.with_input(f"{new}={place_of_sink(sink)}").reading(name_of(sink), new)
    _change(world, after)


def rename_sink(world: World) -> None:
    """On the same table or topic: it would not know which batch its predecessor wrote last."""
    shape = world.applied()
    if unread := [k for k in shape.sinks() if name_of(k) not in shape.read()]:
        sink = world.some(unread)
        new = f"{name_of(sink)}r={place_of_sink(sink)}"
        _change(world, shape.renamed_sink(sink, new))


def rename_stage(world: World) -> None:
    shape = world.applied()
    stage = world.some(shape.stages)
    world.removed.append(stage)
    _change(world, shape.renamed_stage(stage.name, f"{stage.name}r"))


def _topics(shape: Shape) -> list[str]:
    return [name for name in map(name_of, shape.sinks()) if name.startswith("t")]


def _elsewhere(world: World, sink: str) -> str:
    if world.pick(2):
        return sink
    name, number = name_of(sink), len(world.operations.commands)
    return f"{name}=raw.{name}{number}" if name.startswith("lake") else f"{name}={name}.{number}"


def _change(world: World, shape: Shape) -> None:
    world.shape = shape
    world.command("apply")
