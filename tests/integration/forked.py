"""Services as processes, each the child of one that has imported them: to import is most of the
work of a start, and a run starts dozens."""

import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from waybill_local.processes import die_with

SERVICES = ("ingress", "status", "token_tracker")

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload([f"waybill_{name}.wiring" for name in SERVICES])


def start(name: str, environment: Mapping[str, str], log: Path) -> ForkServerProcess:
    """Start `python -m waybill_NAME` with these variables of the environment and no others."""
    log.touch()
    process = _forks.Process(
        target=_run, args=(f"waybill_{name}", dict(environment), log), daemon=True
    )
    process.start()
    return process


def _run(module: str, environment: Mapping[str, str], log: Path) -> None:
    die_with(os.getppid())()
    os.setsid()  # Linux shares its cores among sessions: a busy one is alone so
    with log.open("wb") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(environment)
    for folder in filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)):
        if (custom := Path(folder, "sitecustomize.py")).exists():
            runpy.run_path(str(custom))  # a process that is started runs it by itself
    runpy.run_module(module, run_name="__main__", alter_sys=True)
