"""Runs the token tracker: reads settings and applies commits to slots until a signal."""

import logging
import sys
from contextlib import ExitStack

from waybill_shared.contract.version import VERSION
from waybill_shared.process import logs
from waybill_shared.process.lifetime import run, shutdown_on_signals
from waybill_shared.settings.service import read_settings
from waybill_token_tracker.settings import Settings
from waybill_token_tracker.wiring import build

logger = logging.getLogger("token_tracker")


def main() -> int:
    settings = read_settings(Settings)
    logs.configure("token_tracker", settings.log_format)
    logger.info("starting", extra={"version": VERSION, "port": settings.token_tracker_port})
    with ExitStack() as stack:
        loop = build(settings, stack)
        loop.run(stack.enter_context(shutdown_on_signals()))
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
