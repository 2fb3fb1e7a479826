"""The token tracker: wires Kafka and Redis to the tracker, and turns the loop."""

import logging
import sys
import time
from contextlib import ExitStack

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
from shared.redis_access import require_redis
from shared.settings import read_settings
from shared.slots import Keys
from shared.version import VERSION
from token_tracker.adapters.kafka import SNAPSHOT_PRODUCER, FactStream, KafkaJournal
from token_tracker.adapters.lag import LagWatch
from token_tracker.adapters.redis import RedisStore
from token_tracker.app import Tracker
from token_tracker.settings import TokenTrackerSettings

logger = logging.getLogger("token_tracker")

POLL_S = 0.05
CONFIRM_INTERVAL_S = 1.0  # well below the age at which a slot no longer answers
REDIS_TIMEOUT_S = 5.0


def main() -> None:
    settings = read_settings(TokenTrackerSettings)
    logs.configure("token_tracker", settings.log_format)
    port = settings.token_tracker_port
    logger.info("starting", extra={"version": VERSION, "port": port})
    keys = keys_in_force(settings.api_keys_file)
    admin, store = make_admin(settings.kafka_cluster()), make_store(settings)
    require_access(admin, "token_tracker", settings.topic_prefix)
    consumer = make_consumer(admin.cluster, settings.group("token_tracker"))
    prefix = settings.topic_prefix
    producer = make_producer(admin.cluster, **SNAPSHOT_PRODUCER)
    tracker = Tracker(store, KafkaJournal(consumer, producer, admin, prefix=prefix), SystemClock())
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
            admin.cluster,
            prefix=prefix,
            tracker=tracker,
            membership=Membership(admin),
        )
        lag = stack.enter_context(LagWatch(admin, prefix))
        stack.enter_context(serve_monitor(settings.host, port, "token_tracker", health, keys))
        stop = stack.enter_context(shutdown_on_signals())
        interval_s = settings.token_tracker_snapshot_interval_s
        rounds = Rounds(tracker, store, lag, save_interval_s=interval_s)
        while not stop.is_set():
            health.beat()
            try:
                stream.feed(POLL_S)
                rounds.due(time.monotonic())
            except Retryable as error:
                metrics.count("waybill_loop_retries_total")
                logger.warning("will be tried again", extra={"reason": str(error)})
                stop.wait(CONFIRM_INTERVAL_S)
        tracker.save()


def make_store(settings: TokenTrackerSettings) -> RedisStore:
    server, prefix = settings.redis_server(), settings.topic_prefix
    require_redis(server, "token_tracker", prefix, timeout_s=REDIS_TIMEOUT_S)
    return RedisStore(server.client(timeout_s=REDIS_TIMEOUT_S), Keys(prefix))


class Rounds:
    """What the loop does in each turn, and now and then: confirm every slot, save snapshots."""

    def __init__(
        self, tracker: Tracker, store: RedisStore, lag: LagWatch, *, save_interval_s: float
    ) -> None:
        self._tracker = tracker
        self._store = store
        self._lag = lag
        self._save_interval_s = save_interval_s
        self._confirm_at = self._save_at = 0.0

    def due(self, now: float) -> None:
        self._lag.show(self._tracker.slots())
        if now >= self._confirm_at or self._store.forgot(self._tracker.partitions()):
            self._tracker.confirm()
            self._confirm_at = now + CONFIRM_INTERVAL_S
        self._tracker.flush()
        if now >= self._save_at:
            self._tracker.save()
            self._save_at = now + self._save_interval_s


if __name__ == "__main__":
    sys.exit(run(main))
