"""The stage runner: wires Kafka, drivers and the runner together, and turns the loop."""

import logging
import sys
import uuid
from contextlib import ExitStack
from functools import partial

from shared import logs, metrics
from shared.access import require_access
from shared.authentication import keys_in_force
from shared.clock import SystemClock
from shared.errors import Retryable
from shared.health import Health
from shared.kafka import make_consumer, make_producer
from shared.kafka_admin import make_admin
from shared.membership import Membership
from shared.monitor import serve_monitor
from shared.process import run, shutdown_on_signals
from shared.settings import read_settings
from shared.version import VERSION
from stage_runner.adapters.drivers import DriverProcesses
from stage_runner.adapters.kafka import CommandQueue, KafkaPublisher, KafkaTopics
from stage_runner.adapters.loop import Loop
from stage_runner.adapters.ownership import Ownership
from stage_runner.app import Runner
from stage_runner.settings import StageRunnerSettings

logger = logging.getLogger("stage_runner")

STOP_TIMEOUT_S = 30.0
RETRY_S = 1.0


def main() -> None:
    settings = read_settings(StageRunnerSettings)
    logs.configure("stage_runner", settings.log_format)
    port = settings.stage_runner_port
    logger.info("starting", extra={"version": VERSION, "port": port})
    clock = SystemClock()
    keys = keys_in_force(settings.api_keys_file)
    admin = make_admin(settings.kafka_cluster())
    require_access(admin, "stage_runner", settings.topic_prefix)
    publisher = KafkaPublisher(
        make_producer(admin.cluster), settings.topic_prefix, uuid.uuid4().hex, clock
    )
    drivers = DriverProcesses(settings)
    drivers.sweep()
    runner = Runner(
        KafkaTopics(
            admin, prefix=settings.topic_prefix, replication=settings.stage_runner_replication
        ),
        publisher,
        drivers,
        clock,
    )
    ownership = Ownership(admin.cluster, settings.topic("pipelines"), runner)
    health = Health({"kafka": admin.reachable, "assignment": ownership.check})
    consumer = make_consumer(admin.cluster, settings.group("stage_runner"))
    with ExitStack() as stack:
        stack.callback(consumer.close)
        stack.callback(partial(drivers.stop_all, STOP_TIMEOUT_S))
        commands = CommandQueue(
            consumer,
            settings.topic("commands"),
            acquire=ownership.acquire,
            release=ownership.release,
            membership=Membership(admin),
        )
        stack.enter_context(serve_monitor(settings.host, port, "stage_runner", health, keys))
        stop = stack.enter_context(shutdown_on_signals())
        loop = Loop(runner, ownership, commands, drivers)
        while not stop.is_set():
            health.beat()
            try:
                loop.turn()
            except Retryable as error:
                metrics.count("waybill_loop_retries_total")
                logger.warning("will be tried again", extra={"reason": str(error)})
                stop.wait(RETRY_S)


if __name__ == "__main__":
    sys.exit(run(main))
