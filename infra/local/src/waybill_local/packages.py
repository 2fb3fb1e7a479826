"""Installs what a lock names: `python -m waybill_local.packages UV BUILD LOCK`.

`make` runs it in the environment of a clone, before anything is installed: it imports the standard
library alone. PySpark is published as a source archive only, so it is installed separately:
`waybill_local.pyspark` builds it once for this user, and links it into each environment.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waybill_local import pyspark
from waybill_local.counting import CountingLine
from waybill_local.errors import StackError
from waybill_local.folders import cache_folder

POLL_S: Final = 0.25
LINES_SHOWN: Final = 4
DOWNLOAD_MB: Final = 580
"""Of all that running needs, with PySpark, before a cache has any of it."""
UNITS: Final[Mapping[str, float]] = {"KiB": 1.024e-3, "MiB": 1.048576, "GiB": 1073.741824}
SIGNS: Final[tuple[tuple[str, str], ...]] = (
    ("No space left", "make room, then run make again"),
    ("File too large", "raise the limit of this shell for files (ulimit -f), then run make again"),
    (
        "ash mismatch",
        "try again; if it stays, a mirror or proxy changes files: do not use them",
    ),
    (
        "Read-only file system",
        "set XDG_CACHE_HOME and UV_CACHE_DIR to folders that you may write to",
    ),
    ("ermission denied", "set XDG_CACHE_HOME and UV_CACHE_DIR to folders that you may write to"),
)
"""What uv prints when it fails, and the fix. If it prints none of these, it is the network."""
NETWORK: Final = (
    "check the network; a proxy is named in HTTPS_PROXY, a company's certificates in SSL_CERT_FILE,"
    " its mirror in UV_DEFAULT_INDEX. Then run make again: what is here already is kept"
)

_DOWNLOADING = re.compile(r"^\s*Downloading (\S+) \(([\d.]+)(KiB|MiB|GiB)\)", re.MULTILINE)
_DOWNLOADED = re.compile(r"^\s*Downloaded (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv:
    """A way to run uv. `build` is the lock of the packages that build source archives."""

    program: Path
    build: Path

    def install(self, requirements: Path, output: Path, *more: str) -> subprocess.Popen[bytes]:
        """Start to install all that `requirements` names, each with its hash."""
        command = (
            *(str(self.program), "pip", "install", "--python", sys.executable),
            *("--require-hashes", "--build-constraints", str(self.build)),
            *("--no-progress", "--color", "never", *more, "-r", str(requirements)),
        )
        with output.open("wb") as file:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )


def install(uv: Uv, lock: Path) -> None:
    """Install all that `lock` names. Packages that are installed already take no time.

    Raise StackError if uv fails.
    """
    others, ours = split(lock.read_text(encoding="utf-8"))
    copy = pyspark.Copy(requirement=ours)
    with pyspark.only_one(), _work_folder() as work:
        (work / "others.txt").write_text(others, encoding="utf-8")
        runs = {work / "others.log": uv.install(work / "others.txt", work / "others.log")}
        try:
            if ours and not copy.present:
                (work / "pyspark.txt").write_text(ours, encoding="utf-8")
                options = pyspark.build_options(work)
                log = work / "pyspark.log"
                runs[log] = uv.install(work / "pyspark.txt", log, *options)
            _follow(runs, work, f"from {lock.name}")
        finally:
            for process in runs.values():
                process.kill()
                process.wait()
        if ours:
            copy.keep(work)
            copy.link()


def split(lock: str) -> tuple[str, str]:
    """Return the entries of a lock without PySpark, and the one of PySpark, which may be empty."""
    entries = re.split(r"\n(?=\S)", lock.strip())
    ours = [entry for entry in entries if entry.startswith("pyspark==")]
    return "\n".join(e for e in entries if e not in ours) + "\n", "".join(f"{e}\n" for e in ours)


@contextmanager
def _work_folder() -> Iterator[Path]:
    """Yield a folder for one installation, and delete it afterwards.

    Folders of installations that were killed are deleted first.
    """
    for left in cache_folder().glob(".packages-*"):
        pyspark.remove(left)
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=".packages-") as name:
        yield Path(name)


def _follow(runs: Mapping[Path, subprocess.Popen[bytes]], work: Path, what: str) -> None:
    size = f": a download of about {DOWNLOAD_MB} MB" if len(runs) > 1 else ""
    line = CountingLine("packages", what + size)
    while any(process.poll() is None for process in runs.values()):
        done, total = megabytes("".join(_read(log) for log in runs), work)
        if total:
            line.show(f"{done:.0f} of {total:.0f} MB", done / total)
        time.sleep(POLL_S)
    for log, process in runs.items():
        if process.returncode != 0:
            line.leave()
            raise failure(_read(log))
    _, total = megabytes("".join(_read(log) for log in runs), work)
    line.end(f"{what}, {total:.0f} MB downloaded" if total else f"{what}, all here already")


def megabytes(said: str, work: Path) -> tuple[float, float]:
    """Return how many MB are downloaded, and how many in all. `said` is the output of uv so far."""
    sizes = {name: float(size) * UNITS[unit] for name, size, unit in _DOWNLOADING.findall(said)}
    done = sum(sizes.get(name, 0.0) for name in _DOWNLOADED.findall(said))
    ours = pyspark.measure_download_mb(work)
    return done + (ours or 0.0), sum(sizes.values()) + (0.0 if ours is None else pyspark.ARCHIVE_MB)


def failure(said: str) -> StackError:
    """Return the end of uv's output as an error, with the fix."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    begin = next((n for n, line in enumerate(lines) if line.startswith(("error:", "×"))), -1)
    fix = next((fix for sign, fix in SIGNS if sign in said), NETWORK)
    why = "\n       ".join(lines[begin:][:LINES_SHOWN]) or "uv said nothing"
    return StackError("the packages could not be installed", why=why, fix=fix)


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def main(arguments: Sequence[str]) -> int:
    program, build, lock = map(Path, arguments)
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        install(Uv(program=program, build=build), lock)
    except OSError as error:
        what = f"the packages could not be installed: {error.strerror or error}"
        place = error.filename or cache_folder()
        fix = "make room, or set XDG_CACHE_HOME to a folder that you may write to"
        print(StackError(what, why=str(place), fix=fix), file=sys.stderr)
        return 1
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\ninterrupted: run make again; packages that are here already are kept",
            file=sys.stderr,
        )
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
