"""The four faults, run as a newcomer runs them: on a stack of their own, which leaves nothing."""

import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 540.0  # on an idle machine it takes about two minutes
COLUMNS_MAX = 120
RULE = {"-", " "}
FAULTS = [
    "a record that does not parse",
    "kill -9 between the sink's commit and Spark's",
    "the topic is deleted and created again",
    "retention passes the reader",
]


def first_column(lines: list[str]) -> list[str]:
    """Of the table's rows, which stand between rules; the first line is the header's."""
    width = lines[1].index(" ")
    rows = groupby(lines[1:], key=lambda line: set(line) == RULE)
    cells = [" ".join(line[:width].strip() for line in row) for rule, row in rows if not rule]
    return [cell.strip() for cell in cells[:-1]]  # below the last rule: how long it took


def started_in(folder: Path) -> list[psutil.Process]:
    """The processes that inherited `folder` as the place for temporary files."""
    return [each for each in psutil.process_iter() if _temporary_folder(each) == str(folder)]


def _temporary_folder(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("TMPDIR")
    except psutil.Error:
        return None


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_waybill_says_of_four_faults_what_really_happened(tmp_path: Path) -> None:
    truth = subprocess.run(
        [sys.executable, "-m", "examples.truth"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert truth.returncode == 0, truth.stdout + truth.stderr
    lines = truth.stdout.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("fault "))
    assert first_column(lines[header:]) == FAULTS
    assert max(map(len, lines)) <= COLUMNS_MAX
    assert started_in(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
