"""What operators and runners have said to each other, as Kafka keeps it."""

from dataclasses import dataclass, field

from shared.events import Command, PipelineRecord, Problem


@dataclass(slots=True)
class Operations:
    """`waybill.commands`, `.pipelines` and `.replies`, and the group's offset in the first."""

    commands: list[Command] = field(default_factory=list)
    records: list[PipelineRecord] = field(default_factory=list)
    replies: dict[str, tuple[str, tuple[Problem, ...]]] = field(default_factory=dict)
    committed: int = 0
    owner: object = None
    """The runner that was the last to begin: every other is shut out."""
    refused: set[int] = field(default_factory=set)
    """Offsets of commands that were answered as if nothing of them was written."""

    def newest(self) -> dict[str, PipelineRecord]:
        return {record.pipeline_uid: record for record in self.records}
