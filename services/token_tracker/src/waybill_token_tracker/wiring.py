"""Builds the token tracker: Kafka and Redis, and the tracker between them."""

from contextlib import ExitStack
from typing import Final

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.access.redis import require_redis
from waybill_shared.contract.slots import Keys
from waybill_shared.contract.status_events import source_of
from waybill_shared.http.monitor import serve_monitor
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_token_tracker.adapters.announcements import KafkaEventSessions
from waybill_token_tracker.adapters.groups import ConsumerGroups
from waybill_token_tracker.adapters.journal import STAMPED, KafkaJournal
from waybill_token_tracker.adapters.kafka import FactStream
from waybill_token_tracker.adapters.redis import RedisStore
from waybill_token_tracker.adapters.topics import KafkaTopics
from waybill_token_tracker.app.announcing import Announcer
from waybill_token_tracker.app.lag import LagWatch
from waybill_token_tracker.app.tracker import Tracker
from waybill_token_tracker.loop import Loop
from waybill_token_tracker.settings import Settings

REDIS_TIMEOUT_S: Final = 5.0


def build(settings: Settings, stack: ExitStack) -> Loop:
    """Return the loop with all its parts. `stack` closes what is started here."""
    keys = keys_in_force(settings.api_keys_file)
    admin, store = make_admin(settings.kafka_cluster()), make_store(settings)
    prefix, clock = settings.topic_prefix, SystemClock()
    require_access(admin, "token_tracker", prefix)
    # Ends of partitions are reported, too: they show how far transaction markers go.
    consumer = make_consumer(
        admin.cluster, settings.group("token_tracker"), **{"enable.partition.eof": True}
    )
    topics = OwnTopics(admin, [f"{prefix}.{name}" for name in STAMPED])
    journal = KafkaJournal(consumer, admin, topics, prefix=prefix)
    tracker = Tracker(store, journal, clock, settings.snapshot_rule)
    health = Health(
        {
            "kafka": admin.reachable,
            "redis": store.reachable,
            "assignment": lambda: None if tracker.partitions() else "waiting for partitions",
        }
    )
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
        serve_monitor(
            settings.host,
            settings.token_tracker_port,
            "token_tracker",
            health,
            keys,
            hosts=settings.hosts,
        )
    )
    lag = LagWatch(KafkaTopics(admin), ConsumerGroups(admin), prefix)
    announcer = Announcer(KafkaEventSessions(admin, prefix), store, source_of(prefix))
    stack.enter_context(announcer.run_in_thread())
    return Loop(stream, tracker, store, lag, health)


def make_store(settings: Settings) -> RedisStore:
    server, prefix = settings.redis_server(), settings.topic_prefix
    require_redis(server, "token_tracker", prefix, timeout_s=REDIS_TIMEOUT_S)
    return RedisStore(server.client(timeout_s=REDIS_TIMEOUT_S), Keys(prefix))
