"""Ties a process to its parent: Linux kills it when the thread that started it ends, however.

So nothing of a driver outlives its runner, not even a JVM that somebody has stopped.
"""

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Kill this process when its parent ends.

    Called by the process itself, or between fork and exec of a child.
    """
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
