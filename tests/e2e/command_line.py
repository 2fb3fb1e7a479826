"""`waybill` as a user runs it, in a folder of the user's own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TIMEOUT_S = 180.0
WAYBILL = Path(sys.executable).with_name("waybill")
Ended = subprocess.CompletedProcess[str]
Run = Callable[..., Ended]


def running_in(folder: Path, url: str) -> Run:
    """Return what runs the command without a terminal; `code` is how it must end."""

    def run(*arguments: str, code: int = 0) -> Ended:
        ended = subprocess.run(
            [WAYBILL, *arguments, "--url", url],
            cwd=folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended

    return run
