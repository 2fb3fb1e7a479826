"""Reads what Spark's checkpoint says of batches. Never writes there; may move all of it aside."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from waybill_shared.contract.errors import ContractError

LOG_VERSION = "v1"

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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint folder of one streaming query over Kafka sources."""

    folder: Path

    def exists(self) -> bool:
        """Return True if Spark has written where the query starts.

        The id of the checkpoint is written earlier.
        """
        return any((self.folder / "sources").glob("*/0"))

    def lineage(self) -> str:
        """Return the id that Spark gave this checkpoint. Another id means another history."""
        path = self.folder / "metadata"
        try:
            return str(json.loads(_text(path))["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointDamaged(f"{path} holds no id") from error

    def last_planned(self) -> Planned | None:
        """Return the newest planned batch; None if nothing was planned yet.

        Raise CheckpointDamaged if it cannot be known.
        """
        batch_id = _newest(self.folder / "offsets")
        if batch_id is None:
            return None
        self.lineage()
        committed = _newest(self.folder / "commits")
        if committed is not None and committed > batch_id:
            # A driver that was paused has written into the checkpoint of its successor. Spark would
            # run the last plan again at each start, and never get past its commit.
            raise CheckpointDamaged(f"{self.folder} holds commit {committed} without its plan")
        return Planned(
            starts=self.starts(batch_id),
            ends=self.ends(batch_id),
            committed=committed == batch_id,
        )

    def took_something(self) -> bool | None:
        """Return True if a batch that was not empty is committed; None if damaged files leave it
        open. Spark also plans an empty batch: the first one, and when a partition is added.
        """
        committed = _newest(self.folder / "commits")
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

    def move_aside(self) -> Path | None:
        """Make room for a new lineage; nothing is deleted. Where it is now; None without one."""
        if not self.folder.exists():
            return None
        asides = (self.folder.with_name(f"{self.folder.name}.aside-{n}") for n in count(1))
        return self.folder.rename(next(place for place in asides if not place.exists()))

    def ends(self, batch_id: int) -> TopicOffsets:
        """Return the end offsets of batch `batch_id`.

        If sources share a topic, the nearest end counts.
        """
        path = self.folder / "offsets" / str(batch_id)
        sources = _lines(path)[2:]
        if not sources:
            raise CheckpointDamaged(f"{path} names no source")
        return _fold((_offsets(path, line) for line in sources if line != "-"), min)

    def starts(self, batch_id: int) -> TopicOffsets:
        """Return the start offsets of batch `batch_id`.

        Partitions that are new in it are absent.
        """
        if batch_id > 0:
            return self.ends(batch_id - 1)
        logs = sorted((self.folder / "sources").glob("*/0"))
        return _fold((_offsets(log, _lines(log)[-1]) for log in logs), max)


def _newest(log: Path) -> int | None:
    """Return the highest batch in one of Spark's logs.

    Its folder also has hidden files with checksums.
    """
    return max((int(file.name) for file in log.glob("*") if file.name.isdigit()), default=None)


def _lines(path: Path) -> list[str]:
    lines = _text(path).lstrip("\0").splitlines()
    if not lines or lines[0] != LOG_VERSION:
        raise CheckpointDamaged(f"{path} does not begin with {LOG_VERSION}")
    return lines


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise CheckpointDamaged(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CheckpointDamaged(f"{path} is no text") from error


def _offsets(path: Path, line: str) -> TopicOffsets:
    try:
        return {
            str(topic): {int(partition): int(offset) for partition, offset in offsets.items()}
            for topic, offsets in json.loads(line).items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise CheckpointDamaged(f"{path} holds {line[:100]!r}: no offsets by partition") from error


def _fold(sources: Iterable[TopicOffsets], choose: Callable[[int, int], int]) -> TopicOffsets:
    folded: TopicOffsets = {}
    for source in sources:
        for topic, offsets in source.items():
            known = folded.setdefault(topic, {})
            for partition, offset in offsets.items():
                known[partition] = choose(known.get(partition, offset), offset)
    return folded
