"""Which pipelines this runner owns: those of the command partitions that it was given."""

from collections.abc import Iterable

from shared.kafka_cluster import Kafka
from stage_runner.adapters.kafka import read_records
from stage_runner.app import Runner


class Ownership:
    def __init__(self, kafka: Kafka, pipelines_topic: str, runner: Runner) -> None:
        self._kafka = kafka
        self._topic = pipelines_topic
        self._runner = runner
        self._owned: dict[int, set[str]] | None = None

    def acquire(self, partitions: Iterable[int]) -> None:
        """Pipelines share key, partition count and partitioner over all topics of ours."""
        wanted = list(partitions)
        records = read_records(self._kafka, self._topic, wanted)
        owned = self._owned if self._owned is not None else {}
        for partition in wanted:
            owned[partition] = {r.pipeline_uid for r in records.get(partition, [])}
            for record in records.get(partition, []):
                self._runner.adopt(record)
        self._owned = owned

    def note(self, partition: int, pipeline_uid: str) -> None:
        """A pipeline that came into being after its partition was acquired."""
        if self._owned is not None:
            self._owned.setdefault(partition, set()).add(pipeline_uid)

    def release(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            for uid in (self._owned or {}).pop(partition, set()):
                self._runner.release(uid)

    def check(self) -> str | None:
        return None if self._owned is not None else "waiting for partitions of the commands topic"
