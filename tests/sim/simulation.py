"""One scenario from one seed: faults for a while, then calm until every token has its end."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from unittest.mock import patch

from sim import operators
from sim.apart import ENDINGS, SCHEDULES, families_apart, takes_part
from sim.checked_world import Violation
from sim.faults import FAMILIES, Family
from sim.healing import heal
from sim.merging import ask_merged
from sim.moves import ORDINARY, Move
from sim.shapes import SHAPES, TIMETABLES, Shape, name_of, place_of_sink, topic_of_input
from sim.world import Rates, World
from waybill_shared.contract.manifest.document import Document, paths_of

STEPS = (60, 180)
OFTEN = 3
STARTS = 4
PAIR = "pair"
PAIRS = 0.35
"""So many scenarios have two pipelines; all of them when that is asked for as a family."""
CALM = 0.15
"""So many scenarios have no faults at all: what must work, must work."""
LATEST = 0.15
"""So many pipelines begin at the ends of their inputs."""


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    violations: tuple[Violation, ...]
    trace: Sequence[str]
    tokens: int
    finals: int

    def __str__(self) -> str:
        last = "\n".join(f"    {line}" for line in self.trace[-60:])
        found = "\n".join(f"  {violation}" for violation in self.violations)
        return (
            f"seed {self.seed}:\n{found}\n  the last steps:\n{last}\n"
            f"  all of it: python tests/sim/run.py --seeds {self.seed} --trace"
        )


def simulate(
    seed: int,
    *,
    only: Sequence[str] = (),
    rates: Rates | None = None,
    wanted: str | None = None,
) -> Report:
    """Up to the first violation, or the first of the invariant `wanted`.

    `only` these families of faults take part then, and often; `rates` replaces the seed's.
    """
    with (  # pure, and most of the time otherwise
        patch("waybill_shared.contract.manifest.reading.read_yaml", _read_json),
    ):
        world = _scenario(seed, only, rates)
        _run(world, wanted)
        world.waiters.close()
    return Report(
        seed,
        tuple(world.checker.violations),
        world.trace,
        len(world.issued),
        sum(world.checker.final(issued) for issued in world.issued),
    )


def _read_json(text: str) -> Document:
    tree = json.loads(text)
    return Document(tree=tree, marks=dict.fromkeys(paths_of(tree), (1, 1)), source=text)


def _scenario(seed: int, only: Sequence[str], rates: Rates | None) -> World:
    dice = Random(seed)
    ends = takes_part(ENDINGS, seed, only) or SCHEDULES.name in only
    apart = families_apart(seed, only, ends=ends)
    schedule = Random(seed).choice(TIMETABLES) if SCHEDULES in apart else None
    shapes = tuple(replace(shape, ends=ends, schedule=schedule) for shape in _shapes(dice, only))
    world = World(seed, shapes, partitions=dice.randint(1, len(shapes)))
    families = _families(dice, only) + apart
    often = OFTEN if only else 1
    faults = [(often * weight, move) for family in families for weight, move in family.moves]
    starts = [(STARTS, operators.start)] if ends and schedule is None else []
    world.moves = _stepper(world, [*ORDINARY, (2, ask_merged), *faults, *starts])
    if families:
        world.rates = rates or _rates(dice)
        world.ingress.offsets_lost = dice.choice((0.0, 0.1))
    for pipeline in world.pipelines:
        world.say(f"{pipeline.name}: {pipeline.shape}")
    world.say(f"with {[family.name for family in families]}, {world.rates}")
    return world


def _shapes(dice: Random, only: Sequence[str]) -> tuple[Shape, ...]:
    """One pipeline, or two; the second may read what the first reads, or what it writes."""
    first = _shape(dice)
    if dice.random() >= PAIRS and PAIR not in only:
        return (first,)
    second = _shape(dice)
    written = [place_of_sink(sink) for sink in first.sinks() if name_of(sink).startswith("t")]
    read = [topic_of_input(each) for each in first.inputs]
    own = [f"q.{topic_of_input(each)}" for each in second.inputs]
    sources = dice.sample([*written, *read, *own], len(second.inputs))
    return (first, second.beside("q", sources))


def _shape(dice: Random) -> Shape:
    shape = dice.choice(SHAPES)
    return replace(shape, starting="latest") if dice.random() < LATEST else shape


def _families(dice: Random, only: Sequence[str]) -> list[Family]:
    if only:
        return [family for family in FAMILIES if family.name in only]
    calm = dice.random() < CALM
    return [family for family in FAMILIES if dice.random() < 0.5 and not calm]


def _run(world: World, wanted: str | None) -> None:
    for pipeline in world.pipelines:
        pipeline.command("apply")
    steps = world.dice.randint(*STEPS)
    for _ in range(steps + steps // 2 * (len(world.pipelines) - 1)):
        world.moves()
        if world.checker.found(wanted):
            return
    heal(world, wanted)


def _rates(dice: Random) -> Rates:
    return Rates(
        crash=dice.choice((0.0, 0.005, 0.02)),
        pause=dice.choice((0.0, 0.01, 0.04)),
        takeover=dice.choice((0.0, 0.4)),
        unsure=dice.choice((0.0, 0.05)),
        facts=dice.choice((0.0, 0.1)),
    )


def _stepper(world: World, moves: Sequence[tuple[int, Move]]) -> Callable[[], None]:
    weights = [*accumulate(weight for weight, _ in moves)]
    choices = [move for _, move in moves]

    def step() -> None:
        world.clock.now += 20
        move = world.dice.choices(choices, cum_weights=weights)[0]
        move(world)

    return step
