"""The topic of commits in memory, and a stage that reports its batches there."""

import asyncio
from collections.abc import Collection
from dataclasses import replace

from builders import make_batch, make_commit, make_range
from unit.status.histories import MINE
from unit.status.slots import KEY
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Commit
from waybill_status.app.pipelines.batches import CommitsTopic, ReportsReading
from waybill_status.app.pipelines.history import Part
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.batches import ReportedBatch, report_of
from waybill_status.core.pipelines.history import EventPlace

STAGE = "enrich"


class CommitLog:
    """Fulfils `PastCommits`. Offsets from `start` on are kept."""

    def __init__(self, id: str = "commits-1") -> None:
        self.id = id
        self.start = 0
        self.end = 0
        self.away = False
        self.parts: list[int] = []
        self.reports: list[ReportedBatch] = []
        self._sequences: dict[str, int] = {}
        self._newest: dict[str, Commit] = {}
        self.batch = -1

    def write(self, commit: Commit, *, others: int = 0) -> None:
        """Write a commit, after so many facts of others."""
        self.end += others
        place = EventPlace(topic_id=self.id, partition=MINE, offset=self.end)
        self.reports.append(report_of(place, 1, commit))
        self.end += 1

    def report(
        self, sink: str = "lake", *, again: bool = False, lost: bool = False, others: int = 0
    ) -> None:
        """Report the present batch in a sink, or the newest there `again`. `lost`: the process
        ended before it could report, and the next one reports the fence."""
        if not again:
            sequence = self._sequences[sink] = self._sequences.get(sink, -1) + 1
            started_at = 1_000 * self.batch
            batch = make_batch(
                sequence,
                batch_id=self.batch,
                started_at=started_at,
                committed_at=started_at if lost else started_at + 100,
                version={"snapshot": f"{sink}{self.batch}"},
            )
            read = make_range(10 * self.batch, 10 * self.batch + 10)
            commit = make_commit(stage=STAGE, sink=sink)
            self._newest[sink] = replace(commit, batch=batch, inputs=(read,))
            self.write(self._newest[sink], others=others)
            return
        newest = self._newest[sink]
        fence = replace(newest.batch, committed_at=newest.batch.started_at)
        self.write(replace(newest, batch=fence), others=others)

    def move(self, sink: str = "lake") -> None:
        """Move the fence of a sink alone, as at the start of a driver."""
        newest = self._newest[sink]
        sequence = self._sequences[sink] = self._sequences[sink] + 1
        moved = replace(newest.batch, sequence=sequence)
        self.write(replace(newest, batch=moved, inputs=()))

    def next_batch(self, *sinks: str, others: int = 0) -> None:
        self.batch += 1
        for sink in sinks or ("lake",):
            self.report(sink, others=others)

    async def topic(self, pipeline: PipelineKey) -> CommitsTopic:
        self._answer()
        await asyncio.sleep(0)
        return CommitsTopic(topic_id=self.id, partition=MINE, start=self.start, end=self.end)

    async def read(
        self,
        pipeline: PipelineKey,
        stages: Collection[str],
        topic: CommitsTopic,
        part: Part,
        *,
        most: int,
    ) -> ReportsReading:
        self._answer()
        assert (pipeline, [*stages], topic.topic_id) == (KEY, [STAGE], self.id)
        first, last = part
        self.parts.append(last - first)
        within = [each for each in self.reports if first <= each.place.offset < last]
        found = within[:most]
        end = found[-1].place.offset + 1 if len(found) >= most else last
        return ReportsReading(reports=tuple(found), end=end)

    def _answer(self) -> None:
        if self.away:
            raise Retryable("kafka is away")
