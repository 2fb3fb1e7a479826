"""Named points at which a test may hold a process and kill it; inert unless a folder is set.

With `WAYBILL_FAILPOINTS` naming a folder, a process that comes to a point for which a file stands
there renames it to `<point>.reached` and waits for ever: it is to be killed at exactly this place.
"""

import os
import threading
from pathlib import Path
from typing import Final

FOLDER: Final = "WAYBILL_FAILPOINTS"
REACHED: Final = ".reached"


def reach(point: str) -> None:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    armed = Path(folder) / point
    if armed.exists():
        armed.rename(armed.with_name(armed.name + REACHED))
        threading.Event().wait()
