"""A record that a person wants in its dead-letter topic, because nobody else can find it there."""

from dataclasses import dataclass
from typing import Final

REASON_CHARACTERS_MAX: Final = 200  # with the actor it is the message of a dead letter


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRequest:
    """A dead letter that the next run writes before its first batch, once. Then the record of the
    pipeline drops it.
    """

    command: str
    """The id of the command that asks for it."""
    stage: str | None
    """The only stage that is meant; None: each that reads the topic."""
    topic: str
    topic_id: str
    partition: int
    offset: int
    reason: str
    by: str  # the actor

    def __str__(self) -> str:
        """Return where the record is, for people."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @property
    def message(self) -> str:
        """The message of the dead letter."""
        return f"{self.reason} (put by {self.by})"
