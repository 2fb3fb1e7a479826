"""Runs status: reads settings, connects Kafka and Redis, serves HTTP until a signal."""

import logging
import sys

import uvicorn

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.access.redis import require_redis
from waybill_shared.contract.tokens import load_key_ring
from waybill_shared.contract.version import VERSION
from waybill_shared.http.serving import serve
from waybill_shared.kafka.admin import make_admin
from waybill_shared.process import logs
from waybill_shared.process.lifetime import run, shutdown_on_signals
from waybill_shared.settings.service import read_settings
from waybill_status.adapters.service import Service
from waybill_status.settings import Settings

logger = logging.getLogger("status")


def main() -> int:
    settings = read_settings(Settings)
    logs.configure("status", settings.log_format)
    logger.info("starting", extra={"version": VERSION, "port": settings.status_port})
    ring = load_key_ring(settings.token_keys_file)
    keys = keys_in_force(settings.api_keys_file)
    servers: list[uvicorn.Server] = []

    def end() -> None:
        for server in servers:
            server.should_exit = True

    prefix, timeout_s = settings.topic_prefix, settings.status_redis_timeout_s
    require_access(make_admin(settings.kafka_cluster()), "status", prefix)
    require_redis(settings.redis_server(), "status", prefix, timeout_s=timeout_s)
    service = Service(settings, ring, keys, on_fault=end)
    with shutdown_on_signals():
        up = serve(
            service.app,
            host=settings.host,
            port=settings.status_port,
            on_server=servers.append,
            on_stop=service.close,
        )
    return 0 if up and not service.failed else 1


if __name__ == "__main__":
    sys.exit(run(main))
