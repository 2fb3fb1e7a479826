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
        return (self.folder / "metadata").exists()

    def lineage(self) -> str:
        """The id that Spark gave this checkpoint; another one means another history."""
        return str(json.loads((self.folder / "metadata").read_text())["id"])

    def ends(self, batch_id: int) -> TopicOffsets:
        """Where batch `batch_id` ends. Sources that share a topic: the nearest end counts."""
        lines = self._lines(self.folder / "offsets" / str(batch_id))
        return _fold((json.loads(line) for line in lines[2:] if line != "-"), min)

    def starts(self, batch_id: int) -> TopicOffsets:
        """Where batch `batch_id` begins; partitions that are new in it are absent."""
        if batch_id > 0:
            return self.ends(batch_id - 1)
        logs = sorted((self.folder / "sources").glob("*/0"))
        return _fold((json.loads(self._lines(log)[-1]) for log in logs), max)

    def _lines(self, path: Path) -> list[str]:
        try:
            lines = path.read_text().lstrip("\0").splitlines()
        except OSError as error:
            raise CheckpointDamaged(f"{path}: {error.strerror}") from error
        if not lines or lines[0] != LOG_VERSION:
            raise CheckpointDamaged(f"{path} does not begin with {LOG_VERSION}")
        return lines


def _fold(
    sources: Iterable[dict[str, dict[str, int]]], choose: Callable[[int, int], int]
) -> TopicOffsets:
    folded: TopicOffsets = {}
    for source in sources:
        for topic, offsets in source.items():
            known = folded.setdefault(topic, {})
            for name, offset in offsets.items():
                known[int(name)] = choose(known.get(int(name), offset), offset)
    return folded
