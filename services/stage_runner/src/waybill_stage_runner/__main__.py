"""The stage runner: wires Kafka, drivers and the runner together, and turns the loop."""

import logging
import sys
import threading
import uuid
from contextlib import ExitStack
from functools import partial

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.version import VERSION
from waybill_shared.http.monitor import serve_monitor
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.process import logs, metrics
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_shared.process.lifetime import run, shutdown_on_signals
from waybill_shared.settings.service import read_settings
from waybill_stage_runner.adapters.commands import CommandQueue
from waybill_stage_runner.adapters.drivers import DriverProcesses
from waybill_stage_runner.adapters.loop import Loop
from waybill_stage_runner.adapters.ownership import Ownership, watched_topics
from waybill_stage_runner.adapters.publisher import KafkaPublisher
from waybill_stage_runner.adapters.rehearsal import rehearsal
from waybill_stage_runner.adapters.topics import KafkaTopics
from waybill_stage_runner.adapters.transactions import PartitionProducer
from waybill_stage_runner.app import Runner
from waybill_stage_runner.ports import PartitionLost
from waybill_stage_runner.settings import StageRunnerSettings

logger = logging.getLogger("stage_runner")

STOP_TIMEOUT_S = 30.0
RETRY_S = 1.0
FENCED_EXIT = 1  # whoever supervises this process starts it anew, and the group gives it its part


def main() -> int:
    settings = read_settings(StageRunnerSettings)
    logs.configure("stage_runner", settings.log_format)
    logger.info("starting", extra={"version": VERSION, "port": settings.stage_runner_port})
    trusted = settings.stage_runner_sql_guard == "trusted"
    metrics.gauge("waybill_sql_guard_trusted", int(trusted))
    if trusted:
        logger.warning("queries are trusted: SQL may run Java and read files")
    keys = keys_in_force(settings.api_keys_file)
    admin = make_admin(settings.kafka_cluster())
    require_access(admin, "stage_runner", settings.topic_prefix)
    drivers = DriverProcesses(settings)
    drivers.sweep()
    topics = watched_topics(admin, settings.topic_prefix)
    ownership = Ownership(
        admin.cluster,
        topics,
        settings.topic_prefix,
        partial(make_runner, settings, drivers, topics, uuid.uuid4().hex),
    )
    health = Health({"kafka": admin.reachable, "assignment": ownership.check})
    consumer = make_consumer(admin.cluster, settings.group("stage_runner"))
    with ExitStack() as stack:
        stack.callback(consumer.close)
        stack.enter_context(rehearsal(settings))
        stack.callback(partial(drivers.stop_all, STOP_TIMEOUT_S))
        commands = CommandQueue(
            consumer,
            settings.topic("commands"),
            acquire=ownership.acquire,
            release=ownership.release,
            membership=Membership(admin),
            topics=topics,
        )
        stack.enter_context(
            serve_monitor(settings.host, settings.stage_runner_port, "stage_runner", health, keys)
        )
        stop = stack.enter_context(shutdown_on_signals())
        loop = Loop(ownership, commands, drivers)
        try:
            _turn(loop, health, stop)
        except PartitionLost as lost:
            logger.warning("another runner has taken over", extra={"reason": str(lost)})
            ownership.release(ownership.runners())
            return FENCED_EXIT
    return 0


def _turn(loop: Loop, health: Health, stop: threading.Event) -> None:
    while not stop.is_set():
        health.beat()
        try:
            loop.turn()
        except Retryable as error:
            metrics.count("waybill_loop_retries_total")
            logger.warning("will be tried again", extra={"reason": str(error)})
            stop.wait(RETRY_S)


def make_runner(
    settings: StageRunnerSettings,
    drivers: DriverProcesses,
    topics: OwnTopics,
    run_id: str,
    partition: int,
) -> Runner:
    """The one runner of that partition: every other is shut out when this returns."""
    prefix, admin = settings.topic_prefix, topics.admin
    producer = PartitionProducer(admin.cluster, f"{prefix}/stage_runner/{partition}")
    producer.claim()
    clock = SystemClock()
    return Runner(
        KafkaTopics(admin, prefix=prefix, replication=settings.stage_runner_replication),
        KafkaPublisher(
            producer, topics, prefix, run_id, clock, sql_guard=settings.stage_runner_sql_guard
        ),
        drivers,
        clock,
    )


if __name__ == "__main__":
    sys.exit(run(main))
