"""A folder tree in memory."""

from collections.abc import Iterator, Sequence
from itertools import count

from waybill_spark.tracking.checkpoint import CheckpointDamaged


class MemoryPath:
    """Paths of one tree share its files.

    Fulfils `waybill_spark.tracking.checkpoint.CheckpointFiles`.
    """

    def __init__(self, files: dict[str, str], path: str) -> None:
        self._files = files
        self._path = path

    def __str__(self) -> str:
        return self._path

    def __truediv__(self, name: str) -> "MemoryPath":
        return MemoryPath(self._files, f"{self._path}/{name}")

    @property
    def location(self) -> str:
        return self._path

    def names(self, folder: str) -> Sequence[str]:
        start = f"{self._path}/{folder}/"
        below = (path.removeprefix(start) for path in self._files if path.startswith(start))
        return sorted({path.split("/", 1)[0] for path in below})

    def read(self, path: str) -> str:
        try:
            return self._files[f"{self._path}/{path}"]
        except KeyError as error:
            raise CheckpointDamaged(f"{self._path}/{path}: no such file") from error

    def move_aside(self) -> str | None:
        if not self.exists():
            return None
        asides = (MemoryPath(self._files, f"{self._path}.aside-{n}") for n in count(1))
        target = next(each for each in asides if not each.exists())
        for path in [*self._below()]:
            self._files[f"{target}{path.removeprefix(self._path)}"] = self._files.pop(path)
        return str(target)

    def exists(self) -> bool:
        return self._path in self._files or any(self._below())

    def read_text(self) -> str:
        if self._path not in self._files:
            raise FileNotFoundError(2, "no such file", self._path)
        return self._files[self._path]

    def write_text(self, text: str) -> None:
        self._files[self._path] = text

    def copy(self) -> dict[str, str]:
        return {path: self._files[path] for path in self._below()}

    def restore(self, copied: dict[str, str]) -> None:
        for path in [*self._below()]:
            del self._files[path]
        self._files.update(copied)

    def cut(self, path: str) -> None:
        self._files[path] = ""

    def remove(self, path: str) -> None:
        del self._files[path]

    def _below(self) -> Iterator[str]:
        prefix = f"{self._path}/"
        return (path for path in self._files if path.startswith(prefix))
