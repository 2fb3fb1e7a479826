"""Builds status: Kafka, Redis, the use cases, and the application over them."""

import ssl
from contextlib import ExitStack

from fastapi import APIRouter, FastAPI

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.access.key_ring import load_key_ring
from waybill_shared.access.redis import require_redis
from waybill_shared.contract.sealing import KeyRing
from waybill_shared.contract.slots import Keys
from waybill_shared.contract.status_events import source_of
from waybill_shared.http.app import create_app
from waybill_shared.http.names import HostNames
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.news import AllNews, News
from waybill_shared.kafka.replies import Replies
from waybill_shared.kafka.shares import GroupShares
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.adapters.http.batches import batches_router
from waybill_status.adapters.http.console import console_router
from waybill_status.adapters.http.dead_letters import dead_letters_router
from waybill_status.adapters.http.feldera import (
    feldera_router,
    feldera_stats_router,
    feldera_tokens_router,
)
from waybill_status.adapters.http.flow import flow_router
from waybill_status.adapters.http.operations import key_router, operations_router
from waybill_status.adapters.http.pipelines import (
    events_router,
    offsets_router,
    pipelines_router,
)
from waybill_status.adapters.http.runs import runs_router
from waybill_status.adapters.http.tokens import outcome_json, tokens_router
from waybill_status.adapters.http.watches import asyncapi_router, event_log_router, watches_router
from waybill_status.adapters.kafka.dead_letter_topics import KafkaDeadTopics
from waybill_status.adapters.kafka.event_lookup import KafkaEventLookup
from waybill_status.adapters.kafka.followers import Followers
from waybill_status.adapters.kafka.input_ends import KafkaInputEnds
from waybill_status.adapters.kafka.past_commits import KafkaPastCommits
from waybill_status.adapters.kafka.past_events import KafkaPastEvents, KafkaPastPipelineEvents
from waybill_status.adapters.kafka.watch_writer import KafkaWatchWriters
from waybill_status.adapters.redis import RedisSlots
from waybill_status.adapters.webhooks import Webhooks
from waybill_status.app.dead_letters.reading import DeadLetterReader
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.app.event_log import EventLog
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.pipelines.batches import Batches
from waybill_status.app.pipelines.events import KEPT_MS, Events
from waybill_status.app.pipelines.history import History
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.app.pipelines.offsets import OffsetsReader
from waybill_status.app.pipelines.progress import ProgressReader
from waybill_status.app.pipelines.runs import Runs
from waybill_status.app.watches.deliveries import DeliveryMeans
from waybill_status.app.watches.host_permits import HostPermits
from waybill_status.app.watches.watch_judge import WatchJudge
from waybill_status.app.watches.watchers import Watchers
from waybill_status.core.watches.delivery_book import DeliveryBook
from waybill_status.loop import Loop
from waybill_status.settings import Settings


def build(settings: Settings, stack: ExitStack) -> tuple[FastAPI, Loop]:
    """Return the application, and the loop that runs while it is served. `stack` closes what is
    started here."""
    ring, keys = load_key_ring(settings.token_keys_file), keys_in_force(settings.api_keys_file)
    kafka, prefix, clock = settings.kafka_cluster(), settings.topic_prefix, SystemClock()
    admin = make_admin(kafka)
    require_access(admin, "status", prefix)
    slots = make_slots(settings)
    replays, replies, directory = KnownReplays(), Replies(), PipelineDirectory()
    connectors, book, deliveries = KnownConnectors(), WatchBook(), DeliveryBook()
    hub = Hub(slots, waiters_max=settings.status_waiters_max, replays=replays)
    followers = Followers(
        kafka,
        prefix,
        directory,
        replays,
        connectors=connectors,
        watches=book,
        deliveries=deliveries,
        events_since_ms=clock.now_ms() - KEPT_MS,
    )
    news = News(followers.pipelines)
    tokens = Tokens(directory, news, store=slots, hub=hub, ring=ring, clock=clock, replays=replays)
    watched = AllNews(News(followers.watches), News(followers.deliveries))
    judge = WatchJudge(tokens, hub, clock, source=source_of(prefix), show=outcome_json)
    means = _means(settings, admin, ring, book, deliveries)
    events = Events(lambda: followers.lifecycle.following)
    past = KafkaPastPipelineEvents(admin, settings.topic("lifecycle"))
    loop = Loop(
        slots=slots,
        followers=followers,
        hub=hub,
        tokens=tokens,
        replies=replies,
        events=events,
        history=History(events, past, streams_max=settings.status_waiters_max),
        watchers=_watchers(settings, stack, admin, judge, news=watched, means=means),
        log=_event_log(settings, followers),
    )
    pipelines = Pipelines(directory, news, slots, connectors)
    routers = [
        *_pipeline_routers(loop, pipelines, KafkaInputEnds(admin), slots, connectors),
        batches_router(Batches(pipelines, KafkaPastCommits(admin, settings.topic("commits")))),
        dead_letters_router(DeadLetterReader(pipelines, KafkaDeadTopics(kafka, admin), replays)),
        *_token_routers(settings, tokens, pipelines),
        watches_router(book, deliveries, watched),
        event_log_router(loop.log, News(followers.events)),
        asyncapi_router(),
        key_router(),
        operations_router(replies),
        console_router(),
    ]
    app = create_app(
        "status",
        routers,
        Health(checks={**followers.checks(), "redis": loop.check_redis}),
        loop.run,
        keys,
        open_tokens=settings.open_tokens,
        origins=settings.cors_origins,
        hosts=settings.hosts,
    )
    return app, loop


def _means(
    settings: Settings, admin: KafkaAdmin, ring: KeyRing, book: WatchBook, deliveries: DeliveryBook
) -> DeliveryMeans:
    tls = ssl.create_default_context()
    return DeliveryMeans(
        book=deliveries,
        watches=book,
        receivers=Webhooks(ring, settings.webhook_rules, HostNames(), tls),
        events=KafkaEventLookup(admin, settings.topic("status")),
        permits=HostPermits(),
        clock=SystemClock(),
        source=source_of(settings.topic_prefix),
    )


def _watchers(
    settings: Settings,
    stack: ExitStack,
    admin: KafkaAdmin,
    judge: WatchJudge,
    *,
    news: AllNews,
    means: DeliveryMeans,
) -> Watchers:
    prefix = settings.topic_prefix
    shares = GroupShares(admin, settings.topic("watches"), f"{prefix}.status")
    return Watchers(
        judge,
        means.watches,
        news,
        writers=KafkaWatchWriters(settings.kafka_cluster(), prefix),
        shares=stack.enter_context(shares),
        means=means,
    )


def _event_log(settings: Settings, followers: Followers) -> EventLog:
    return EventLog(
        KafkaPastEvents(settings.kafka_cluster(), settings.topic("status")),
        begins=lambda: followers.events.begins,
        streams_max=settings.status_waiters_max,
    )


def _pipeline_routers(
    loop: Loop,
    pipelines: Pipelines,
    ends: KafkaInputEnds,
    slots: RedisSlots,
    connectors: KnownConnectors,
) -> list[APIRouter]:
    caught_up = loop.followers.lifecycle.caught_up.is_set
    progress = ProgressReader(pipelines, ends, slots, SystemClock(), connectors)
    return [
        pipelines_router(pipelines),
        offsets_router(OffsetsReader(pipelines, ends, slots, SystemClock())),
        events_router(pipelines, loop.history, caught_up=caught_up),
        runs_router(pipelines, Runs(loop.history), caught_up=caught_up),
        flow_router(progress),
        feldera_router(pipelines),
        feldera_stats_router(pipelines, progress),
    ]


def _token_routers(settings: Settings, tokens: Tokens, pipelines: Pipelines) -> list[APIRouter]:
    return [
        tokens_router(tokens, query_bytes_max=settings.status_query_bytes_max),
        feldera_tokens_router(pipelines, tokens, hold_s=settings.status_feldera_hold_s),
    ]


def make_slots(settings: Settings) -> RedisSlots:
    server, prefix = settings.redis_server(), settings.topic_prefix
    timeout_s = settings.status_redis_timeout_s
    require_redis(server, "status", prefix, timeout_s=timeout_s)
    return RedisSlots(server.async_client(timeout_s=timeout_s), Keys(prefix))
