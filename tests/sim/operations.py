"""What operators and runners have said to each other, as Kafka keeps it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command, PipelineRecord


@dataclass(slots=True)
class Operations:
    """One partition of `waybill.commands`, with what its runner reads and writes besides:
    `.pipelines` and `.replies`, and the group's offset in the first."""

    records: list[PipelineRecord]
    """Of all pipelines."""
    owns: Callable[[str], bool]
    """Whether the pipeline with this uid has its commands here."""
    commands: list[Command] = field(default_factory=list)
    replies: dict[str, tuple[str, tuple[Problem, ...]]] = field(default_factory=dict)
    committed: int = 0
    owner: object = None
    """The runner that was the last to begin: every other is shut out."""
    refused: set[int] = field(default_factory=set)
    """Offsets of commands that were answered as if nothing of them was written."""

    def newest(self) -> dict[str, PipelineRecord]:
        mine = (record for record in self.records if self.owns(record.pipeline_uid))
        return {record.pipeline_uid: record for record in mine}
