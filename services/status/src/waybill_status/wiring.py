"""Builds status: Kafka, Redis, the use cases, and the application over them."""

from fastapi import FastAPI

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.access.redis import require_redis
from waybill_shared.contract.fetched import KnownConnectors
from waybill_shared.contract.pipelines import PipelineDirectory
from waybill_shared.contract.slots import Keys
from waybill_shared.contract.tokens import load_key_ring
from waybill_shared.http.app import create_app
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.news import News
from waybill_shared.kafka.replies import Replies
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_status.adapters.dead_letters_http import dead_letters_router
from waybill_status.adapters.dead_topics import KafkaDeadTopics
from waybill_status.adapters.feldera_http import feldera_router, feldera_tokens_router
from waybill_status.adapters.followers import Followers
from waybill_status.adapters.http import operations_router, tokens_router
from waybill_status.adapters.input_ends import KafkaInputEnds
from waybill_status.adapters.pipelines_http import events_router, pipelines_router
from waybill_status.adapters.redis import RedisSlots
from waybill_status.app.dead_letters import DeadLetterReader
from waybill_status.app.events import KEPT_MS, Events
from waybill_status.app.hub import Hub
from waybill_status.app.pipelines import Pipelines
from waybill_status.app.progress import ProgressReader
from waybill_status.app.replays import KnownReplays
from waybill_status.app.tokens import Tokens
from waybill_status.loop import Loop
from waybill_status.settings import Settings


def build(settings: Settings) -> tuple[FastAPI, Loop]:
    """The application, and what turns while it is served."""
    ring = load_key_ring(settings.token_keys_file)
    keys = keys_in_force(settings.api_keys_file)
    kafka, prefix, clock = settings.kafka_cluster(), settings.topic_prefix, SystemClock()
    admin = make_admin(kafka)
    require_access(admin, "status", prefix)
    slots = make_slots(settings)
    waiters_max = settings.status_waiters_max
    replays, replies = KnownReplays(), Replies()
    hub = Hub(slots, waiters_max=waiters_max, replays=replays)
    events, directory = Events(streams_max=waiters_max), PipelineDirectory()
    since_ms = clock.now_ms() - KEPT_MS
    connectors = KnownConnectors()
    followers = Followers(
        kafka, prefix, directory, replays, connectors=connectors, events_since_ms=since_ms
    )
    news = News(followers.pipelines)
    tokens = Tokens(directory, news, store=slots, hub=hub, ring=ring, clock=clock, replays=replays)
    loop = Loop(
        slots=slots, followers=followers, hub=hub, tokens=tokens, replies=replies, events=events
    )
    pipelines = Pipelines(directory, news, slots, connectors)
    progress = ProgressReader(pipelines, KafkaInputEnds(admin), slots)
    routers = [
        tokens_router(tokens, query_bytes_max=settings.status_query_bytes_max),
        pipelines_router(pipelines),
        events_router(pipelines, events, caught_up=followers.lifecycle.caught_up.is_set),
        dead_letters_router(DeadLetterReader(pipelines, KafkaDeadTopics(kafka, admin))),
        operations_router(replies),
        feldera_router(pipelines, progress),
        feldera_tokens_router(pipelines, tokens, held_s=settings.status_feldera_hold_s),
    ]
    checks = {
        "pipelines": followers.pipelines.check,
        "replies": followers.replies.check,
        "replays": followers.replays.check,
        "connectors": followers.connectors.check,
        "redis": loop.check_redis,
    }
    app = create_app(
        "status",
        routers,
        Health(checks=checks),
        loop.run,
        keys,
        open_tokens=settings.open_tokens,
        origins=settings.cors_origins,
    )
    return app, loop


def make_slots(settings: Settings) -> RedisSlots:
    server, prefix = settings.redis_server(), settings.topic_prefix
    timeout_s = settings.status_redis_timeout_s
    require_redis(server, "status", prefix, timeout_s=timeout_s)
    return RedisSlots(server.async_client(timeout_s=timeout_s), Keys(prefix))
