"""What is known of an input when its records are read."""

from dataclasses import dataclass
from typing import Final, Literal

from waybill_shared.contract.manifest.columns import Column, parse_columns
from waybill_shared.contract.manifest.formats import RecordKeys
from waybill_shared.contract.manifest.inputs import Expectation, Input

JSON: Final = RecordKeys()
Action = Literal["dead_letter", "drop", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedInput:
    """An input, and how it is decoded: `keys` say what its records are. `own_output`: a stage of
    this pipeline writes the topic.

    `strict`: a record with a field that is no column is malformed. Otherwise such a field is
    reported.
    """

    name: str
    topic: str
    columns: str
    own_output: bool
    keys: RecordKeys = JSON
    strict: bool = False
    on_malformed: Literal["dead_letter", "drop", "fail"] = "dead_letter"
    rules: tuple[Expectation, ...] = ()

    @property
    def actions(self) -> tuple[Action, ...]:
        """The treatment of a record, by its verdict."""
        return (self.on_malformed, *(rule.on_violation for rule in self.rules))

    @property
    def counted(self) -> list[int]:
        """The verdicts that a pass counts; for the others it returns positions."""
        return [number for number, each in enumerate(self.actions) if each != "dead_letter"]

    def verdicts(self, action: Action) -> list[int]:
        return [number for number, each in enumerate(self.actions) if each == action]

    def columns_to_parse(self) -> tuple[Column, ...]:
        """Return the columns. Raise UserError if a stage writes types that no input can have."""
        return parse_columns(self.columns, binary=True)


def describe_input(source: Input) -> DecodedInput:
    return DecodedInput(
        name=source.name,
        topic=source.kafka.topic,
        columns=source.columns,
        own_output=False,
        keys=source,
        strict=source.on_unknown_field == "refuse",
        on_malformed=source.on_malformed,
        rules=source.expectations,
    )
