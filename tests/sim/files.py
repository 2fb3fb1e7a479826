"""A folder tree in memory, with as much of `pathlib.Path` as `Checkpoint` uses."""

from collections.abc import Iterator
from fnmatch import fnmatchcase


class MemoryPath:
    """Paths of one tree share its files."""

    def __init__(self, files: dict[str, str], path: str) -> None:
        self._files = files
        self._path = path

    def __str__(self) -> str:
        return self._path

    def __truediv__(self, name: str) -> "MemoryPath":
        return MemoryPath(self._files, f"{self._path}/{name}")

    @property
    def name(self) -> str:
        return self._path.rsplit("/", 1)[1]

    def with_name(self, name: str) -> "MemoryPath":
        return MemoryPath(self._files, f"{self._path.rsplit('/', 1)[0]}/{name}")

    def exists(self) -> bool:
        return self._path in self._files or any(self._below())

    def read_text(self) -> str:
        if self._path not in self._files:
            raise FileNotFoundError(2, "no such file", self._path)
        return self._files[self._path]

    def write_text(self, text: str) -> None:
        self._files[self._path] = text

    def unlink(self) -> None:
        del self._files[self._path]

    def glob(self, pattern: str) -> Iterator["MemoryPath"]:
        """Files only: nothing that is asked for is an empty folder."""
        depth = pattern.count("/")
        for path in [*self._below()]:
            rest = path.removeprefix(f"{self._path}/")
            if rest.count("/") == depth and fnmatchcase(rest, pattern):
                yield MemoryPath(self._files, path)

    def rename(self, target: "MemoryPath") -> "MemoryPath":
        for path in [*self._below()]:
            moved = str(target) + path.removeprefix(self._path)
            self._files[moved] = self._files.pop(path)
        return target

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
