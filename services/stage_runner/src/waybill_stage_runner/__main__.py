"""Runs the stage runner: reads settings, carries out commands and supervises drivers until a
signal.
"""

import logging
import sys
from contextlib import ExitStack
from typing import Final

from waybill_shared.contract.version import VERSION
from waybill_shared.process import logs
from waybill_shared.process.lifetime import run, shutdown_on_signals
from waybill_shared.settings.service import read_settings
from waybill_stage_runner.settings import Settings
from waybill_stage_runner.wiring import build

logger = logging.getLogger("stage_runner")

FENCED_EXIT: Final = 1  # whoever supervises this process starts it again


def main() -> int:
    settings = read_settings(Settings)
    logs.configure("stage_runner", settings.log_format)
    logger.info("starting", extra={"version": VERSION, "port": settings.stage_runner_port})
    with ExitStack() as stack:
        loop = build(settings, stack)
        stop = stack.enter_context(shutdown_on_signals())
        return 0 if loop.run(stop) else FENCED_EXIT


if __name__ == "__main__":
    sys.exit(run(main))
