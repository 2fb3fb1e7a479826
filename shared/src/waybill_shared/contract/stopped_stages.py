"""A stage that a failure of its own has stopped, while the others of its pipeline go on."""

from dataclasses import dataclass
from typing import Final

MESSAGE_CHARACTERS_MAX: Final = 300  # of each text: the record and each beat are one message


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedStage:
    """A stage that no run starts until somebody asks for it, or changes it."""

    stage: str
    since: int  # which life of that name
    at: int  # when it stopped, in milliseconds since the epoch
    run: int  # in which it stopped
    message: str
    hint: str
    sink: str | None = None
    put_aside: int = 0  # records that went to a dead-letter topic in that run
