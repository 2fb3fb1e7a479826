"""Named points at which a test may stop a process; inert unless a folder is set.

`WAYBILL_FAILPOINTS` names the folder. When a process reaches a point for which a file exists there,
it renames the file to `<point>.reached` and waits. Then the test kills it at exactly this point, or
removes the file, and it continues.
"""

import os
import time
from pathlib import Path
from typing import Final

FOLDER: Final = "WAYBILL_FAILPOINTS"
REACHED: Final = ".reached"
POLL_S: Final = 0.02


def reach(point: str) -> None:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    armed = Path(folder) / point
    if not armed.exists():
        return
    reached = armed.with_name(armed.name + REACHED)
    armed.rename(reached)
    while reached.exists():
        time.sleep(POLL_S)
