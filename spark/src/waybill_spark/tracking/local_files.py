"""The files of a checkpoint on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from waybill_spark.tracking.checkpoint import CheckpointDamaged


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """A folder. Fulfils `waybill_spark.tracking.checkpoint.CheckpointFiles`."""

    folder: Path

    @property
    def location(self) -> str:
        return str(self.folder)

    def names(self, folder: str) -> Sequence[str]:
        return sorted(file.name for file in (self.folder / folder).glob("*"))

    def read(self, path: str) -> str:
        try:
            return (self.folder / path).read_text()
        except OSError as error:
            raise CheckpointDamaged(f"{self.location}/{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise CheckpointDamaged(f"{self.location}/{path} is no text") from error

    def move_aside(self) -> str | None:
        if not self.folder.exists():
            return None
        asides = (self.folder.with_name(f"{self.folder.name}.aside-{n}") for n in count(1))
        return str(self.folder.rename(next(each for each in asides if not each.exists())))
