"""Runs ingress: reads settings, connects Kafka, serves HTTP until a signal."""

import logging
import sys
from contextlib import ExitStack

import uvicorn
from fastapi import FastAPI

from waybill_ingress.adapters.http import (
    add_refusals,
    pipelines_router,
    records_router,
    tokens_router,
)
from waybill_ingress.adapters.kafka import AdminTopics, ProducerLog
from waybill_ingress.adapters.mint import RandomMint
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.merges import Merges
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.tokens import Tokens
from waybill_ingress.settings import Settings
from waybill_shared.access.authentication import KeysInForce, keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.pipelines import PipelineDirectory
from waybill_shared.contract.tokens import KeyRing, load_key_ring
from waybill_shared.contract.version import VERSION
from waybill_shared.http.app import create_app
from waybill_shared.http.serving import serve
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.kafka.news import News
from waybill_shared.process import logs, metrics
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_shared.process.lifetime import run, shutdown_on_signals
from waybill_shared.settings.service import read_settings

logger = logging.getLogger("ingress")


def main() -> int:
    settings = read_settings(Settings)
    logs.configure("ingress", settings.log_format)
    logger.info("starting", extra={"version": VERSION, "port": settings.ingress_port})
    ring = load_key_ring(settings.token_keys_file)
    keys = keys_in_force(settings.api_keys_file)
    servers: list[uvicorn.Server] = []
    faults: list[str] = []

    def end(reason: str) -> None:
        logger.critical("producer failed for good", extra={"reason": reason})
        faults.append(reason)
        for server in servers:
            server.should_exit = True

    require_access(make_admin(settings.kafka_cluster()), "ingress", settings.topic_prefix)
    with ExitStack() as stack:
        log = stack.enter_context(
            ProducerLog(settings.kafka_cluster(), settings.producer_options(), on_fatal=end)
        )
        app = build(settings, ring, keys, log, stack)
        stack.enter_context(shutdown_on_signals())
        up = serve(app, host=settings.host, port=settings.ingress_port, on_server=servers.append)
    return 1 if faults or not up else 0


def build(
    settings: Settings,
    ring: KeyRing,
    keys: KeysInForce | None,
    log: ProducerLog,
    stack: ExitStack,
) -> FastAPI:
    """The application over real adapters; `stack` ends what it starts."""
    kafka, directory = settings.kafka_cluster(), PipelineDirectory()

    def accept(record: PipelineRecord) -> None:
        directory.accept(record)
        if record.desired == "deleted":
            metrics.forget(record.name)

    follower = stack.enter_context(
        TopicFollower(kafka, settings.topic("pipelines"), PipelineRecord, accept)
    )
    topics = AdminTopics(make_admin(kafka))
    mint = RandomMint(ring, SystemClock())
    registry = Registry(directory, News(follower), topics, mint)
    records = Records(registry, log, topics, mint, settings.row_limits)
    commands = Commands(registry, log, mint, settings.topic_prefix)
    bytes_max = settings.ingress_body_bytes_max
    routers = [
        records_router(records, body_bytes_max=bytes_max),
        tokens_router(Tokens(registry, topics, mint), Merges(mint), body_bytes_max=bytes_max),
        pipelines_router(commands),
    ]
    health = Health(checks={"kafka": log.check, "pipelines": follower.check})
    app = create_app("ingress", routers, health, keys=keys)
    add_refusals(app)
    return app


if __name__ == "__main__":
    sys.exit(run(main))
