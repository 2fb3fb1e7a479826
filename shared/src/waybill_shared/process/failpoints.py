"""Named points at which a test may hold a process; inert unless a folder is set.

With `WAYBILL_FAILPOINTS` naming a folder, a process that comes to a point for which a file stands
there renames it to `<point>.reached` and waits: it is to be killed at exactly this place, or goes
on once that file is removed.
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
