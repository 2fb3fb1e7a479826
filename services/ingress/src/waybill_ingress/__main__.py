"""Runs ingress: reads settings, connects to Kafka, serves HTTP until a signal."""

import logging
import sys
from contextlib import ExitStack

from waybill_ingress.settings import Settings
from waybill_ingress.wiring import build
from waybill_shared.contract.version import VERSION
from waybill_shared.http.serving import serve
from waybill_shared.process import logs
from waybill_shared.process.lifetime import run, shutdown_on_signals
from waybill_shared.settings.service import read_settings

logger = logging.getLogger("ingress")


def main() -> int:
    settings = read_settings(Settings)
    logs.configure("ingress", settings.log_format)
    logger.info("starting", extra={"version": VERSION, "port": settings.ingress_port})
    with ExitStack() as stack:
        app, failed, answers = build(settings, stack)
        stack.enter_context(shutdown_on_signals())
        well = serve(
            app,
            host=settings.host,
            port=settings.ingress_port,
            failed=failed,
            on_stop=answers.close,
        )
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(run(main))
