"""The topic of an input, as an answer has it. Never talks to anything."""

from dataclasses import dataclass

from waybill.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownTopic:
    """A topic that has got more partitions; `added` is 0 if it had so many before."""

    topic: str
    partitions: int
    added: int

    @classmethod
    def read(cls, fields: Fields) -> "GrownTopic":
        return cls(
            topic=fields.text("topic"),
            partitions=fields.whole("partitions"),
            added=fields.whole("added"),
        )
