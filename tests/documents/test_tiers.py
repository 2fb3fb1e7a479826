"""What `make test` leaves to `make test-deep` is there, and CI runs some of it."""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deep_edges import DEEP
from deep_parts import (
    AREAS,
    BEGIN_S,
    DEEP_S,
    PART_S,
    PARTS,
    WORKERS,
    about,
    changed,
    fitting,
    part_of,
    parts,
    turn,
)
from tiers import TESTS, is_wholly_deep


@pytest.mark.parametrize("file", DEEP)
def test_each_file_of_the_deep_tests_is_there_with_what_is_named(file: str) -> None:
    source = (TESTS / file).read_text()
    names = [text for text in DEEP[file] if text.replace("_", "").isalnum()]
    assert [name for name in names if name not in source] == []


def test_promises_that_only_deep_tests_hold_say_so() -> None:
    """By their links in docs/delivery.md: each test that `make test` leaves out is marked."""
    page = (TESTS.parent / "docs" / "delivery.md").read_text()
    links = re.findall(r"\[(test_\w+)\]\(\.\./tests/([\w/]+\.py)\)( \(deep\))?", page)
    assert links
    wrong = [test for test, file, mark in links if is_wholly_deep(file, test) != bool(mark)]
    assert wrong == []


def test_each_file_of_the_deep_tests_is_in_one_part_of_ten_minutes() -> None:
    made = parts(PARTS)
    assert sorted(file for part in made for file in part) == sorted(DEEP)
    times = [sum(DEEP_S[file] for file in part) for part in made]
    assert max(times) <= min(WORKERS * PART_S, 1.1 * min(times))
    assert max(DEEP_S.values()) <= PART_S, "one worker runs all tests of a file"


@pytest.mark.parametrize("text", ["0/6", "7/6", "6", "6/0", "a/b"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"written as 2/{PARTS}, not as {text}"):
        part_of(text)


@pytest.mark.parametrize("area", AREAS)
def test_an_area_is_a_folder_and_has_deep_tests(area: str) -> None:
    assert (TESTS.parent / area).is_dir()
    assert all(any(file.startswith(begin) for file in DEEP) for begin in AREAS[area])


def test_each_deep_test_is_about_the_code_of_some_area() -> None:
    assert set(about([f"{area}/x.py" for area in AREAS])) == DEEP.keys()


def test_what_fits_ends_in_time_and_comes_in_its_order() -> None:
    slowest = max(DEEP, key=lambda file: DEEP_S[file])
    rest = sorted(DEEP.keys() - {slowest})
    left_s = BEGIN_S + DEEP_S[slowest]
    chosen = fitting([slowest, *rest, *rest], left_s)
    assert chosen[0] == slowest
    assert len(chosen) == len(set(chosen))
    assert sum(DEEP_S[file] for file in chosen) <= WORKERS * (left_s - BEGIN_S)
    assert fitting(DEEP, 0.0) == fitting(DEEP, -60.0) == []


def test_a_part_is_chosen_also_in_a_clone_that_knows_one_commit_or_in_none(tmp_path: Path) -> None:
    assert (turn(tmp_path), changed(tmp_path)) == (1, set())
    assert [_commit(tmp_path / "whole", f"{number}.py") for number in range(3)] == [2, 3, 4]
    assert changed(tmp_path / "whole") == {"0.py", "1.py", "2.py"}
    subprocess.check_call(
        ("git", "clone", "-q", "--depth", "1", f"file://{tmp_path}/whole", f"{tmp_path}/shallow")
    )
    assert 1 <= turn(tmp_path / "shallow") <= PARTS
    assert "2.py" in changed(tmp_path / "shallow")


MAKE = """#!/bin/sh
case "$1" in
test) echo; echo '==== 9 passed in 61.20s (0:01:01) ===='; exit $RED_TEST ;;
test-deep) echo "$2"; echo '==== 2 passed, 1 skipped in 9.00s ===='; exit $RED_DEEP ;;
esac
"""


@pytest.mark.parametrize(
    ("red_test", "red_deep", "chosen", "code", "end"),
    [
        (0, 0, "a.py b.py", 0, ["ARGS=a.py b.py", "2 passed", "9 passed", "2 passed"]),
        (0, 0, "", 0, ["9 passed", "9 passed"]),
        (0, 2, "a.py", 2, ["ARGS=a.py", "2 passed", "9 passed", "2 passed"]),
        (2, 0, "a.py", 2, ["9 passed"]),
    ],
)
def test_what_ci_runs_is_red_with_any_of_it_and_closes_with_both_summaries(
    tmp_path: Path, red_test: int, red_deep: int, chosen: str, code: int, end: list[str]
) -> None:
    for file, text in (("make", MAKE), (".venv/bin/python", f"#!/bin/sh\necho {chosen}\n")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(0o755)
    shutil.copytree(TESTS.parent / ".ci", tmp_path / ".ci")
    path = f"{tmp_path}:{os.environ['PATH']}"
    reds = {"PATH": path, "RED_TEST": str(red_test), "RED_DEEP": str(red_deep)}
    run = subprocess.run(
        tmp_path / ".ci" / "run", env=reds, capture_output=True, text=True, check=False
    )
    assert run.returncode == code, run.stderr
    lines = run.stdout.splitlines()[-len(end) :]
    assert all(expected in line for expected, line in zip(end, lines, strict=True)), lines


def _commit(folder: Path, file: str) -> int:
    """Commit a new `file`; return the part that comes next."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(folder))
    subprocess.check_call(("git", "init", "-q", str(folder)))
    (folder / file).touch()
    subprocess.check_call((*git, "add", file))
    subprocess.check_call((*git, "commit", "-q", "-m", file))
    return turn(folder)
