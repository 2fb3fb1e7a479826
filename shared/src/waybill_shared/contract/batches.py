"""What a batch did in a sink, as one value. Fences and commits have it, slots keep it, and status
shows it. A new fact of a batch is a field here.
"""

from collections import Counter
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """The effect of a batch in a sink. Times are milliseconds since the epoch."""

    batch_id: int
    sequence: int
    """The number of the fence. It grows with each move of the fence, also across lineages."""
    lineage: str
    started_at: int
    write_started_at: int
    committed_at: int
    """In a fence the start of the batch: it is written with the rows, before the commit."""
    rows: int
    version: dict[str, str] = field(default_factory=dict)
    """The sink's name for its content after the batch, such as its snapshot; empty in a fence."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Records by rule, of all batches so far."""
    dead_sequence: int = 0
    """The number of the last DeadLetters of the stage that this batch is past."""


def planned(batch_id: int, lineage: str, started_at: int) -> BatchReport:
    """Return the report of a batch of which nothing is written yet. All its times are its start."""
    return BatchReport(
        batch_id=batch_id,
        sequence=0,
        lineage=lineage,
        started_at=started_at,
        write_started_at=started_at,
        committed_at=started_at,
        rows=0,
    )


def follow(before: BatchReport | None, report: BatchReport) -> BatchReport:
    """Return the report for the fence after that of `before`: with the next number, and with what
    batches before it dropped.
    """
    if before is None:
        return report
    dropped = Counter(before.dropped)
    dropped.update(report.dropped)
    return replace(
        report,
        sequence=before.sequence + 1,
        dropped=dict(dropped),
        dead_sequence=max(before.dead_sequence, report.dead_sequence),
    )


def later(known: BatchReport | None, report: BatchReport) -> BatchReport:
    """Return the report of the later batch, which is past the dead letters of both."""
    if known is None:
        return report
    last = report if report.sequence > known.sequence else known
    dead = max(known.dead_sequence, report.dead_sequence)
    return last if last.dead_sequence == dead else replace(last, dead_sequence=dead)
