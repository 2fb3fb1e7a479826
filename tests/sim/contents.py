"""What the log and the sinks really hold, read past all of Waybill: the truth for the checker."""

from collections.abc import Iterable, Iterator

from sim.effects import writer_of
from sim.log import Cluster, Place, Row
from sim.sinks import Storage
from waybill_shared.contract.events import Fence, PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.slots import key_of


def fence_key(uid: str, stage: StageDefinition, sink: SinkDefinition) -> str:
    return f"{uid}/{key_of(stage, sink)}"


def fence_keys(record: PipelineRecord) -> set[str]:
    uid = record.pipeline_uid
    return {fence_key(uid, stage, sink) for stage in record.stages for sink in stage.sinks}


class Contents:
    def __init__(self, cluster: Cluster, storage: Storage) -> None:
        self._cluster = cluster
        self._storage = storage

    def fence(self, key: str) -> Fence | None:
        storage = self._storage
        found = storage.fences.get(key)
        tables = (table.fences.get(key) for table in storage.tables.values())
        return found or next((fence for fence in tables if fence is not None), None)

    def visible(self, uid: str, stage: StageDefinition, sink: SinkDefinition) -> set[Row]:
        return set(self.rows(uid, stage, sink))

    def left(self, uid: str, stage: StageDefinition, sink: SinkDefinition) -> set[Row]:
        """What a reader who comes now finds."""
        return set(self.rows(uid, stage, sink, gone=False))

    def rows(
        self, uid: str, stage: StageDefinition, sink: SinkDefinition, *, gone: bool = True
    ) -> Iterator[Row]:
        """What a reader finds there, each as often as it finds it; or found before it was gone."""
        key = fence_key(uid, stage, sink)
        for table in self._storage.tables.values():
            yield from table.rows.get(key, ())
        fence = self._storage.fences.get(key)
        ids = dict.fromkeys(o.topic_id for o in fence.outputs) if fence is not None else {}
        writer = (f"{uid[:4]}.{first_name(stage)}", sink.since)
        for topic_id in ids:
            for _, row in self._readable(topic_id) if gone or self._there(topic_id) else ():
                if row.path and writer_of(row) == writer:
                    yield row

    def _readable(self, topic_id: str) -> Iterator[tuple[Place, Row]]:
        """What a reader of committed records sees; of a topic that is gone, what it surely saw."""
        there = self._there(topic_id)
        for number, partition in enumerate(self._cluster.incarnations[topic_id].partitions):
            seen = self._storage.seen.get((topic_id, number), 0)
            end = partition.stable_end() if there else seen
            for offset, row in self.entries(topic_id, number, 0, end):
                yield Place(topic_id, number, offset), row

    def _there(self, topic_id: str) -> bool:
        return self._cluster.identify(self._cluster.incarnations[topic_id].name) == topic_id

    def entries(
        self, topic_id: str, partition: int, start: int, end: int
    ) -> Iterator[tuple[int, Row]]:
        partitions = self._cluster.incarnations[topic_id].partitions
        if partition >= len(partitions):
            return
        entries = partitions[partition].entries
        for offset in range(start, min(end, len(entries))):
            entry = entries[offset]
            if entry.row is not None and entry.decided:
                yield offset, entry.row

    def at(self, places: Iterable[Place]) -> Iterator[Row]:
        for topic_id, number, offset in places:
            for _, row in self.entries(topic_id, number, offset, offset + 1):
                yield row
