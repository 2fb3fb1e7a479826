"""Computes the progress of a connector: how far it is after each chunk."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from waybill_ingress.core.connectors.rows import FileChunk
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.events import MARKER
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import ConnectorState

RUNS_MAX: Final = 64
FIRST_PAUSE_S: Final = 1.0
LAST_PAUSE_S: Final = 600.0
FORM_CHARACTERS: Final = 16
ERROR_CHARACTERS_MAX: Final = 1_000


def advance(
    progress: ConnectorProgress, chunk: FileChunk, places: Iterable[tuple[int, int]], topic_id: str
) -> ConnectorProgress:
    """Return the progress after a chunk. `places` are partition and offset of each of its
    records.
    """
    return replace(
        progress,
        rows=chunk.rows,
        records=progress.records + len(chunk.records),
        dead=progress.dead + len(chunk.dead),
        spans=join_spans(progress.spans, runs_of(places, topic_id)),
    )


def runs_of(places: Iterable[tuple[int, int]], topic_id: str) -> list[Span]:
    """Return one span for each partition: from its first to its last record."""
    offsets: dict[int, list[int]] = {}
    for partition, offset in places:
        offsets.setdefault(partition, []).append(offset)
    return [
        Span(topic_id=topic_id, partition=at, start=min(found), end=max(found) + 1)
        for at, found in sorted(offsets.items())
    ]


def join_spans(spans: Sequence[Span], runs: Iterable[Span]) -> tuple[Span, ...]:
    """Add new spans. A span that follows another, with only a transaction marker between, extends
    it.

    Only the newest 64 stay apart. Older ones are joined to one for each partition, from the first
    to the last record. A token for it waits longer than needed, but for all of them.
    """
    found = list(spans)
    for run in runs:
        last = next((n for n in reversed(range(len(found))) if found[n].key == run.key), None)
        if last is not None and found[last].start <= run.start <= found[last].end + MARKER:
            before = found.pop(last)
            run = replace(run, start=before.start, end=max(before.end, run.end))  # noqa: PLW2901
        found.append(run)
    old: dict[tuple[str, int], Span] = {}
    for span in found[:-RUNS_MAX]:
        before = old.get(span.key, span)
        start, end = min(before.start, span.start), max(before.end, span.end)
        old[span.key] = replace(span, start=start, end=end)
    return (*old.values(), *found[-RUNS_MAX:])


def form_of(connector: FileConnector) -> str:
    """Return a digest of how the file is read, because rows are counted by that."""
    read = connector.model_dump_json(include={"format", "update_format", "csv"})
    return sha256(read.encode()).hexdigest()[:FORM_CHARACTERS]


def fail(progress: ConnectorProgress, reason: str) -> ConnectorProgress:
    return replace(
        progress, state=ConnectorState.FAILED, error=reason[:ERROR_CHARACTERS_MAX] or "unknown"
    )


def pause_s(failures: int) -> float:
    """Return the pause before the next attempt, after so many failures in a row."""
    return min(FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16), LAST_PAUSE_S)
