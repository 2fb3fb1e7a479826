"""Reads the batches of Spark's checkpoint. Never writes there; may move all of it aside."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from waybill_shared.contract.errors import ContractError

LOG_VERSION: Final = "v1"
COMMITTED_WITHIN_S: Final = 10.0  # it is a small file; a full disk must not hold up a stop
POLL_S: Final = 0.005

TopicOffsets = dict[str, dict[int, int]]
"""topic → partition → offset"""


class CheckpointDamaged(ContractError):
    """A file of the checkpoint that cannot be read as what it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The last batch that a checkpoint has planned; `committed`: Spark will not run it again."""

    starts: TopicOffsets
    ends: TopicOffsets
    committed: bool


class Stoppable(Protocol):
    """A streaming query of Spark."""

    @property
    def isActive(self) -> bool: ...  # noqa: N802 - Spark's name

    def stop(self) -> None: ...


class CheckpointFiles(Protocol):
    """The files of one checkpoint, wherever they are, by their paths in it."""

    @property
    def location(self) -> str:
        """The address of all of it, for people."""

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, in order; none if there is no such folder."""

    def read(self, path: str) -> str:
        """Return the text of a file. Raise CheckpointDamaged if it cannot be read."""

    def move_aside(self) -> str | None:
        """Rename all of it, so that nothing is left here. Return its new address; None if there
        was nothing.
        """


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of one streaming query over Kafka sources."""

    files: CheckpointFiles

    def lineage(self) -> str:
        """Return the id that Spark gave this checkpoint. Another id means another history."""
        try:
            return str(json.loads(self.files.read("metadata"))["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointDamaged(f"{self.files.location}/metadata holds no id") from error

    def last_planned(self) -> Planned | None:
        """Return the newest planned batch; None if nothing was planned yet.

        Raise CheckpointDamaged if it cannot be known.
        """
        batch_id = self._newest("offsets")
        if batch_id is None:
            return None
        self.lineage()
        committed = self._newest("commits")
        if committed is not None and committed > batch_id:
            # A driver that was paused has written into the checkpoint of its successor. Spark would
            # run the last plan again at each start, and never get past its commit.
            location = self.files.location
            raise CheckpointDamaged(f"{location} holds commit {committed} without its plan")
        return Planned(
            starts=self.starts(batch_id),
            ends=self.ends(batch_id),
            committed=committed == batch_id,
        )

    def await_commit(self, batch_id: int, is_running: Callable[[], bool]) -> bool:
        """Wait until Spark has noted that the batch is done. Return False if its query ends before,
        or if it takes too long.

        -1: there was no batch, and nothing to wait for.
        """
        deadline = time.monotonic() + COMMITTED_WITHIN_S
        while not self._has_committed(batch_id):
            if not is_running() or time.monotonic() > deadline:
                return self._has_committed(batch_id)
            time.sleep(POLL_S)
        return True

    def took_something(self) -> bool | None:
        """Return True if a batch that was not empty is committed; None if damaged files leave it
        open. Spark also plans an empty batch: the first one, and when a partition is added.
        """
        committed = self._newest("commits")
        if committed is None:
            return False
        try:
            first = self.starts(0)
            return any(
                end > first.get(topic, {}).get(partition, 0)
                for topic, offsets in self.ends(committed).items()
                for partition, end in offsets.items()
            )
        except CheckpointDamaged:
            return None

    def move_aside(self) -> str | None:
        """Make room for a new lineage; nothing is deleted. Return its new address; None if there
        was nothing.
        """
        return self.files.move_aside()

    def ends(self, batch_id: int) -> TopicOffsets:
        """Return the end offsets of batch `batch_id`.

        If sources share a topic, the nearest end counts.
        """
        path = f"offsets/{batch_id}"
        sources = self._lines(path)[2:]
        if not sources:
            raise CheckpointDamaged(f"{self.files.location}/{path} names no source")
        return _fold((self._offsets(path, line) for line in sources if line != "-"), min)

    def starts(self, batch_id: int) -> TopicOffsets:
        """Return the start offsets of batch `batch_id`.

        Partitions that are new in it are absent.
        """
        if batch_id > 0:
            return self.ends(batch_id - 1)
        logs = self._initial_logs()
        return _fold((self._offsets(log, self._lines(log)[-1]) for log in logs), max)

    def _has_committed(self, batch_id: int) -> bool:
        newest = self._newest("commits")
        return batch_id < 0 or (newest is not None and newest >= batch_id)

    def _initial_logs(self) -> list[str]:
        """Return the paths of the files that say where each source started."""
        sources = (f"sources/{source}" for source in self.files.names("sources"))
        return [f"{source}/0" for source in sources if "0" in self.files.names(source)]

    def _newest(self, log: str) -> int | None:
        """Return the highest batch in one of Spark's logs.

        Its folder also has hidden files with checksums.
        """
        return max((int(name) for name in self.files.names(log) if name.isdigit()), default=None)

    def _lines(self, path: str) -> list[str]:
        lines = self.files.read(path).lstrip("\0").splitlines()
        if not lines or lines[0] != LOG_VERSION:
            where = f"{self.files.location}/{path}"
            raise CheckpointDamaged(f"{where} does not begin with {LOG_VERSION}")
        return lines

    def _offsets(self, path: str, line: str) -> TopicOffsets:
        try:
            return {
                str(topic): {int(partition): int(offset) for partition, offset in offsets.items()}
                for topic, offsets in json.loads(line).items()
            }
        except (ValueError, TypeError, AttributeError) as error:
            text = f"{self.files.location}/{path} holds {line[:100]!r}: no offsets by partition"
            raise CheckpointDamaged(text) from error


def stop_after_commit(query: Stoppable, checkpoint: Checkpoint, done: int) -> bool:
    """Stop a query when Spark has noted the end of batch `done`. Return False if it has not."""
    has_noted = checkpoint.await_commit(done, lambda: query.isActive)
    query.stop()
    return has_noted


def _fold(sources: Iterable[TopicOffsets], choose: Callable[[int, int], int]) -> TopicOffsets:
    folded: TopicOffsets = {}
    for source in sources:
        for topic, offsets in source.items():
            known = folded.setdefault(topic, {})
            for partition, offset in offsets.items():
                known[partition] = choose(known.get(partition, offset), offset)
    return folded
