"""Reads what Spark's checkpoint says of batches. Never writes there."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

LOG_VERSION = "v1"

TopicOffsets = dict[str, dict[int, int]]
"""topic → partition → offset"""


class CheckpointDamaged(Exception):
    """A file of the checkpoint that cannot be read as what it should be."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint folder of one streaming query over Kafka sources."""

    folder: Path

    def exists(self) -> bool:
        """Whether Spark has written down where it begins; its id alone comes earlier."""
        return any((self.folder / "sources").glob("*/0"))

    def lineage(self) -> str:
        """The id that Spark gave this checkpoint; another one means another history."""
        path = self.folder / "metadata"
        try:
            return str(json.loads(_text(path))["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointDamaged(f"{path} holds no id") from error

    def ends(self, batch_id: int) -> TopicOffsets:
        """Where batch `batch_id` ends. Sources that share a topic: the nearest end counts."""
        path = self.folder / "offsets" / str(batch_id)
        sources = _lines(path)[2:]
        if not sources:
            raise CheckpointDamaged(f"{path} names no source")
        return _fold((_offsets(path, line) for line in sources if line != "-"), min)

    def starts(self, batch_id: int) -> TopicOffsets:
        """Where batch `batch_id` begins; partitions that are new in it are absent."""
        if batch_id > 0:
            return self.ends(batch_id - 1)
        logs = sorted((self.folder / "sources").glob("*/0"))
        return _fold((_offsets(log, _lines(log)[-1]) for log in logs), max)


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
