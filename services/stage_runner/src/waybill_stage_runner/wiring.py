"""Builds the stage runner: Kafka clients, driver processes, and a runner for each partition that it
is assigned.
"""

import logging
from contextlib import ExitStack
from functools import partial
from typing import Final

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.http.monitor import serve_monitor
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.kafka.follower import FETCH_WAIT_MS
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.kafka.partition_producer import PartitionProducer
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_stage_runner.adapters.commands import CommandReader
from waybill_stage_runner.adapters.drivers import DriverPool
from waybill_stage_runner.adapters.publisher import KafkaPublisher
from waybill_stage_runner.adapters.recovery import KafkaRecovery
from waybill_stage_runner.adapters.rehearsal import rehearsal
from waybill_stage_runner.adapters.topics import KafkaTopics
from waybill_stage_runner.app.admission import Admission
from waybill_stage_runner.app.measuring import show_guard
from waybill_stage_runner.app.ownership import Ownership
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.loop import Loop
from waybill_stage_runner.settings import Settings

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 30.0


def build(settings: Settings, stack: ExitStack) -> Loop:
    """Build the loop. `stack` closes what is started here."""
    _report_guard(settings)
    keys = keys_in_force(settings.api_keys_file)
    admin, prefix = make_admin(settings.kafka_cluster()), settings.topic_prefix
    require_access(admin, "stage_runner", prefix)
    drivers = DriverPool(settings)
    drivers.sweep()
    topics = watch_topics(admin, prefix)
    ownership = Ownership(
        KafkaRecovery(topics, prefix),
        partial(make_runner, settings, drivers, topics, admission=Admission(settings.core_limits)),
    )
    health = Health({"kafka": admin.reachable, "assignment": ownership.check})
    options = {"fetch.wait.max.ms": FETCH_WAIT_MS}
    consumer = make_consumer(admin.cluster, settings.group("stage_runner"), **options)
    stack.callback(consumer.close)
    stack.callback(partial(drivers.stop_all, STOP_TIMEOUT_S))
    stack.enter_context(rehearsal(settings))  # ends first: drivers need the cores to end
    commands = CommandReader(
        consumer,
        settings.topic("commands"),
        acquire=ownership.acquire,
        release=ownership.release,
        membership=Membership(admin),
        topics=topics,
    )
    stack.enter_context(
        serve_monitor(
            settings.host,
            settings.stage_runner_port,
            "stage_runner",
            health,
            keys,
            hosts=settings.hosts,
        )
    )
    return Loop(ownership, commands, drivers, health)


def watch_topics(admin: KafkaAdmin, prefix: str) -> OwnTopics:
    """Watch the topics that may not be created again while the runner runs.

    In a new topic of commands none was carried out yet. A new topic of commits has no definitions,
    and the next runner writes them again. In a new topic of lifecycle the epochs of drivers start
    again.
    """
    return OwnTopics(admin, [f"{prefix}.{name}" for name in ("commands", "commits", "lifecycle")])


def make_runner(
    settings: Settings,
    drivers: DriverPool,
    topics: OwnTopics,
    partition: int,
    *,
    admission: Admission,
) -> Runner:
    """Return the one runner of that partition. When this returns, every other one is fenced."""
    prefix, admin = settings.topic_prefix, topics.admin
    producer = PartitionProducer(admin.cluster, f"{prefix}/stage_runner/{partition}")
    producer.claim()
    clock = SystemClock()
    return Runner(
        KafkaTopics(admin, prefix=prefix, replication=settings.stage_runner_replication),
        KafkaPublisher(producer, topics, prefix, clock, sql_guard=settings.stage_runner_sql_guard),
        drivers,
        clock,
        admission=admission,
        times=settings.time_limits,
    )


def _report_guard(settings: Settings) -> None:
    trusted = settings.stage_runner_sql_guard == "trusted"
    show_guard(trusted=trusted)
    if trusted:
        logger.warning("queries are trusted: SQL may run Java and read files")
