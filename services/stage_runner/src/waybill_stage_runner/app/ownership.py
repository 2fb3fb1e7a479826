"""Keeps the partitions of the commands topic that this runner owns, and the runner of each."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from waybill_shared.contract.events import PipelineRecord
from waybill_stage_runner.app.ports import Recovery
from waybill_stage_runner.app.runner import Runner


class Ownership:
    def __init__(self, recovery: Recovery, make_runner: Callable[[int], Runner]) -> None:
        """Keep `make_runner`: it fences the earlier owner of the partition before it returns. It
        raises Retryable.
        """
        self._recovery = recovery
        self._make_runner = make_runner
        self._runners: dict[int, Runner] | None = None

    def acquire(self, partitions: Iterable[int]) -> None:
        """Create runners for `partitions` and give them the pipelines that Kafka has for them.

        One partition number is enough: a pipeline has the same key, partition count and partitioner
        in all our topics. Records are read only after every earlier owner was fenced, so they are
        final.
        """
        commands_id = self._recovery.commands_id()  # asked before anything is read
        fresh = {partition: self._make_runner(partition) for partition in partitions}
        records = self._recovery.records(fresh)
        answered = self._recovery.find_answered(fresh)
        for partition, runner in fresh.items():
            runner.adopt_answered(answered.get(partition, ()))
            for record in records.get(partition, []):
                runner.adopt(_place(record, commands_id))
        self._runners = {**(self._runners or {}), **fresh}

    def runners(self) -> dict[int, Runner]:
        return dict(self._runners or {})

    def release(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            runner = (self._runners or {}).pop(partition, None)
            if runner is not None:
                runner.release()

    def check(self) -> str | None:
        return None if self._runners is not None else "waiting for partitions of the commands topic"


def _place(record: PipelineRecord, commands_id: str) -> PipelineRecord:
    """Reset `commanded_at` if the record names another topic of commands: in this one no command
    was carried out yet.
    """
    return record if record.commands_id == commands_id else replace(record, commanded_at=-1)
