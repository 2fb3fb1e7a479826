"""A rescale of a pipeline, as its record has it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """The number of tasks that run at once, and who asked for it."""

    parallelism: int
    actor: str
