"""The demo, run as a newcomer runs it, on the stack that is there."""

import subprocess
import sys
from pathlib import Path

from waybill_local.stack import StackState

TIMEOUT_S = 240.0
WAYBILL = Path(sys.executable).with_name("waybill")


def test_the_demo_ends_with_the_rows_of_the_snapshots_that_its_tokens_named(
    stack: StackState,
) -> None:
    demo = subprocess.run(
        [WAYBILL, "demo"],
        cwd=stack.folder.parent,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert demo.returncode == 0, demo.stdout + demo.stderr
    lines = demo.stdout.splitlines()
    assert sum("complete orders" in line for line in lines) == 2
    assert sum("iceberg snapshot" in line for line in lines) == 2
    assert sum("2026-11-21 09:00:00+00:00" in line for line in lines) == 4
    assert "s in all: apply" in lines[-1]
