"""Turns the clocks of drivers: what they take for the time differs from the true one.

While a file with the uid of a pipeline is in the folder, all drivers that were given this pipeline
are as far ahead as it says, in hours. Their JVM has the true time.
"""

from pathlib import Path
from typing import Final

TURNED: Final = "TEST_CLOCKS"
LOOK_S: Final = 0.1
SITE: Final = f"""
import os, sys, time

home = [each for each in sys.orig_argv if each.endswith("/home.json")]
if home:
    clocks, runs = os.environ["{TURNED}"], os.path.join(os.path.dirname(home[0]), "runs")
    at_ns, at, waited = time.time_ns, time.time, time.monotonic
    seen = [float("-inf"), 0]

    def hours():
        if waited() > seen[0] + {LOOK_S}:
            given = os.listdir(runs) if os.path.exists(runs) else ()
            turned = {{*os.listdir(clocks)}} & {{*given}}
            found = [open(os.path.join(clocks, uid)).read() for uid in turned]
            seen[:] = waited(), int(found[0]) if found and found[0] else 0
        return seen[1]

    time.time_ns = lambda: at_ns() + hours() * 3_600 * 10**9
    time.time = lambda: at() + hours() * 3_600
"""


def driver_clocks(folder: Path) -> dict[str, str]:
    """Make the folder. What processes need in their environment, to look there."""
    site = folder.with_name(f"{folder.name}-site")
    for each in (folder, site):
        each.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    return {"PYTHONPATH": str(site), TURNED: str(folder)}


def turn(folder: Path, uid: str, *, ahead_h: int) -> None:
    (folder / uid).write_text(str(ahead_h))
