"""The examples of docs/sdk.md are typed: whoever copies them may check strictly. That they run is
seen in tests/e2e."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from waybill.outcomes import Outcome, SinkProgress

PAGE = Path(__file__).parents[2] / "docs" / "sdk.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def check(code: str, folder: Path) -> str:
    (folder / "page.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "page.py"]
    checked = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    return checked.stdout


def test_the_examples_are_typed(tmp_path: Path) -> None:
    code = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))

    assert check(code, tmp_path).startswith("Success")
    told = check(f"{code}\nreceipt.token.wait().kid\n", tmp_path)
    assert '"Outcome" has no attribute "kid"' in told


@pytest.mark.parametrize("name", ["iceberg_snapshots", "postgres_lsn"])
def test_the_page_says_where_the_rows_of_a_sink_can_be_seen(name: str) -> None:
    assert hasattr(Outcome, name) or hasattr(SinkProgress, name)
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8").replace("outcome.", "")
