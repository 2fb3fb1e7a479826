"""Families of faults by dice of their own: the histories of other seeds stay as they were."""

from collections.abc import Sequence
from random import Random
from typing import Final

from sim import naming, operators
from sim.faults import Family, kill_driver, kill_runner
from sim.moves import minutes_pass, turn_runner

PUTS: Final = Family("puts", ((3, operators.put), (1, kill_driver)))
REPLAYS: Final = Family(
    "replays",
    (
        (4, operators.replay),
        (4, operators.ask_replays),
        (3, operators.change_mood),
        (1, kill_driver),
    ),
)
RESCALES: Final = Family("rescales", ((4, operators.rescale), (1, kill_driver), (1, kill_runner)))
SCHEDULES: Final = Family(
    "schedules",
    (
        (6, minutes_pass),
        (1, kill_driver),
        (1, kill_runner),
        (1, operators.stop),
        (1, operators.start),
        (1, operators.pause),
        (1, operators.resume),
        (1, operators.reschedule),
    ),
)
"""With pipelines that end by themselves, and begin again by a schedule."""
OTHER_NAMES: Final = Family(
    "names",
    (
        (8, naming.want_name),
        (8, naming.go_on),
        (16, turn_runner),
        (1, kill_driver),
        (2, kill_runner),
        (1, operators.stop),
        (1, operators.start),
        (1, operators.apply),
        (1, operators.delete),
    ),
)
"""Of pipelines: two of them want the same ones."""
ENDINGS: Final = "endings"
"""Scenarios in which pipelines end by themselves; some of them have a schedule."""
SHARES: Final = {
    PUTS.name: 0.15,
    REPLAYS.name: 0.2,
    RESCALES.name: 0.1,
    OTHER_NAMES.name: 0.1,
    ENDINGS: 0.15,
    SCHEDULES.name: 0.4,
}
"""In so many scenarios; in all when that is asked for as a family."""


def takes_part(name: str, seed: int, only: Sequence[str]) -> bool:
    if only:
        return name in only
    return Random(f"{name} {seed}").random() < SHARES[name]


def families_apart(seed: int, only: Sequence[str], *, ends: bool) -> list[Family]:
    always = (PUTS, REPLAYS, RESCALES, OTHER_NAMES)
    each = (PUTS, RESCALES, OTHER_NAMES, SCHEDULES) if ends else always
    return [family for family in each if takes_part(family.name, seed, only)]
