"""What stages had of a Kafka sink before its topic went: it has arrived where tokens waited then.

A token may have been complete by that, and stays so when these stages are removed.
"""

from collections.abc import Iterator, Sequence

from sim.contents import Contents, fence_key, fence_keys
from sim.effects import as_written, transform
from sim.flow import Taken
from sim.log import Row
from waybill_shared.contract.events import PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import first_name

Sink = tuple[StageDefinition, SinkDefinition]


class Readers:
    """Of one pipeline, for tokens of one generation."""

    def __init__(
        self, records: Sequence[PipelineRecord], generation: int, taken: Taken, contents: Contents
    ) -> None:
        """`records` are those of the pipeline, in their order."""
        self._records = [record for record in records if record.generation >= generation]
        self._generation = generation
        self._taken = taken
        self._contents = contents

    def had(self, row: Row, sink: Sink) -> bool:
        """Whether all that read on from the sink, when the last of them did, have that row of it
        in theirs."""
        return self._had(row, sink, self._records)

    def _had(self, row: Row, sink: Sink, records: Sequence[PipelineRecord]) -> bool:
        for end in range(len(records), 0, -1):
            if readers := [*self._of(sink, records[end - 1])]:
                return all(self._put(row, reader, records[:end]) for reader in readers)
        return False

    def _of(self, sink: Sink, record: PipelineRecord) -> Iterator[Sink]:
        """The sinks that tokens waited for behind it; younger ones tell them nothing."""
        if fence_key(record.pipeline_uid, *sink) not in fence_keys(record):
            return
        for stage in record.stages:
            if any(not source.root and source.topic == sink[1].target for source in stage.inputs):
                yield from ((stage, s) for s in stage.sinks if s.since <= self._generation)

    def _put(self, row: Row, reader: Sink, records: Sequence[PipelineRecord]) -> bool:
        """Whether the reader took it, and what it became is in its sink or came on from there."""
        uid = records[0].pipeline_uid
        batches = self._taken.get(fence_key(uid, *reader), ())
        if not any(row in self._contents.at(batch.read) for _, batch in batches):
            return False
        became = {*as_written(transform(uid, first_name(reader[0]), row), reader[1])}
        missing = became - self._contents.visible(uid, *reader)
        return all(self._had(each, reader, records) for each in missing)
