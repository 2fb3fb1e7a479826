"""What the console decides without a page, and the types of all of it: where Node is there."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONSOLE = HERE.parents[2] / "console"
NODE, TSC = shutil.which("node"), shutil.which("tsc")


@pytest.mark.skipif(NODE is None, reason="there is no Node: what it would show e2e shows too")
def test_what_is_pure(tmp_path: Path) -> None:
    """Copied, because a browser needs no word that these are modules, and Node does."""
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copytree(CONSOLE, tmp_path / "console")
    tests = [shutil.copy(file, tmp_path / "tests") for file in _tests(tmp_path)]
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--test", *map(str, tests)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def _tests(folder: Path) -> list[Path]:
    (folder / "tests").mkdir()
    return sorted(HERE.glob("*.test.mjs"))


@pytest.mark.skipif(TSC is None, reason="there is no tsc: `npm install --global typescript`")
def test_types() -> None:
    assert TSC is not None
    done = subprocess.run(
        [TSC, "--project", str(HERE)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout
