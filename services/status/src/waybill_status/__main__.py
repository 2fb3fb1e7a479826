"""Runs status: reads settings, connects to Kafka and Redis, serves HTTP until a signal."""

import logging
import sys
from contextlib import ExitStack

from waybill_shared.contract.version import VERSION
from waybill_shared.http.serving import serve
from waybill_shared.process import logs
from waybill_shared.process.lifetime import run, shutdown_on_signals
from waybill_shared.settings.service import read_settings
from waybill_status.settings import Settings
from waybill_status.wiring import build

logger = logging.getLogger("status")


def main() -> int:
    settings = read_settings(Settings)
    logs.configure("status", settings.log_format)
    logger.info("starting", extra={"version": VERSION, "port": settings.status_port})
    with ExitStack() as stack:
        app, loop = build(settings, stack)
        stack.enter_context(shutdown_on_signals())
        well = serve(
            app,
            host=settings.host,
            port=settings.status_port,
            failed=loop.failed,
            on_stop=loop.close,
        )
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(run(main))
