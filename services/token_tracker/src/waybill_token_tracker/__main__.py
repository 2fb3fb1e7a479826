"""The token tracker: wires Kafka and Redis to the tracker, and turns the loop."""

import logging
import sys
import time
from contextlib import ExitStack

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.access.redis import require_redis
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import Keys
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
from waybill_token_tracker.adapters.journal import STAMPED, KafkaJournal
from waybill_token_tracker.adapters.kafka import FactStream
from waybill_token_tracker.adapters.lag import LagWatch
from waybill_token_tracker.adapters.redis import RedisStore
from waybill_token_tracker.app import Tracker
from waybill_token_tracker.core.snapshots import SnapshotRule
from waybill_token_tracker.settings import TokenTrackerSettings

logger = logging.getLogger("token_tracker")

POLL_S = 0.05
CONFIRM_INTERVAL_S = 1.0  # well below the age at which a slot no longer answers
SAVE_INTERVAL_S = 2.0  # each looks at every pipeline, and writes few
REDIS_TIMEOUT_S = 5.0


def main() -> None:
    settings = read_settings(TokenTrackerSettings)
    logs.configure("token_tracker", settings.log_format)
    port = settings.token_tracker_port
    logger.info("starting", extra={"version": VERSION, "port": port})
    keys = keys_in_force(settings.api_keys_file)
    admin, store = make_admin(settings.kafka_cluster()), make_store(settings)
    require_access(admin, "token_tracker", settings.topic_prefix)
    # Ends of partitions are told, too: they say how far markers of transactions go.
    consumer = make_consumer(
        admin.cluster, settings.group("token_tracker"), **{"enable.partition.eof": True}
    )
    prefix, clock = settings.topic_prefix, SystemClock()
    topics = OwnTopics(admin, [f"{prefix}.{name}" for name in STAMPED])
    journal = KafkaJournal(consumer, admin, topics, prefix=prefix)
    tracker = Tracker(store, journal, clock, snapshot_rule(settings))
    health = Health(
        {
            "kafka": admin.reachable,
            "redis": store.reachable,
            "assignment": lambda: None if tracker.partitions() else "waiting for partitions",
        }
    )
    with ExitStack() as stack:
        stack.callback(consumer.close)
        stream = FactStream(
            consumer,
            admin,
            journal,
            prefix=prefix,
            tracker=tracker,
            membership=Membership(admin),
            clock=clock,
        )
        stack.enter_context(
            serve_monitor(settings.host, settings.token_tracker_port, "token_tracker", health, keys)
        )
        stop = stack.enter_context(shutdown_on_signals())
        lag = stack.enter_context(LagWatch(admin, prefix))
        rounds = Rounds(tracker, store, lag)
        while not stop.is_set():
            health.beat()
            try:
                stream.feed(POLL_S)
                rounds.due(time.monotonic())
            except Retryable as error:
                metrics.count("waybill_loop_retries_total")
                logger.warning("will be tried again", extra={"reason": str(error)})
                stop.wait(CONFIRM_INTERVAL_S)
        save_last(tracker)


def make_store(settings: TokenTrackerSettings) -> RedisStore:
    server, prefix = settings.redis_server(), settings.topic_prefix
    require_redis(server, "token_tracker", prefix, timeout_s=REDIS_TIMEOUT_S)
    return RedisStore(server.client(timeout_s=REDIS_TIMEOUT_S), Keys(prefix))


def snapshot_rule(settings: TokenTrackerSettings) -> SnapshotRule:
    return SnapshotRule(age_ms_max=int(settings.token_tracker_snapshot_interval_s * 1000))


def save_last(tracker: Tracker) -> None:
    """So that the next one begins sooner; it may be at work already, and then this is refused."""
    try:
        tracker.save(whole=True)
    except Retryable as error:
        logger.warning("not saved at the end", extra={"reason": str(error)})


class Rounds:
    """What the loop does in each turn, and now and then: confirm every slot, save what is due."""

    def __init__(self, tracker: Tracker, store: RedisStore, lag: LagWatch) -> None:
        self._tracker = tracker
        self._store = store
        self._lag = lag
        self._confirm_at = self._save_at = 0.0

    def due(self, now: float) -> None:
        self._lag.show(self._tracker.slots())
        if now >= self._confirm_at or self._store.forgot(self._tracker.partitions()):
            self._tracker.confirm()
            self._confirm_at = now + CONFIRM_INTERVAL_S
        self._tracker.flush()
        if now >= self._save_at:
            self._tracker.save()
            self._save_at = now + SAVE_INTERVAL_S


if __name__ == "__main__":
    sys.exit(run(main))
