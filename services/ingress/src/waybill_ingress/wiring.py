"""Builds ingress: Kafka clients, the use cases, and the HTTP application over them."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from threading import Event
from typing import Final

from fastapi import FastAPI

from waybill_ingress.adapters.files.download import FileFetcher
from waybill_ingress.adapters.http.bodies import RecordSpool
from waybill_ingress.adapters.http.feldera import (
    feldera_commands_router,
    feldera_connectors_router,
    feldera_router,
)
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.http.logs import logs_router
from waybill_ingress.adapters.http.maintain import maintain_router
from waybill_ingress.adapters.http.manifests import convert_router, propose_router, validate_router
from waybill_ingress.adapters.http.pipelines import pipelines_router
from waybill_ingress.adapters.http.records import records_router, tokens_router
from waybill_ingress.adapters.http.replays import replays_router
from waybill_ingress.adapters.http.watches import watches_router
from waybill_ingress.adapters.kafka.connectors import KafkaConnectorLog
from waybill_ingress.adapters.kafka.dead_letter_reading import KafkaDeadLetterLookup
from waybill_ingress.adapters.kafka.idempotency import KafkaRequestLog
from waybill_ingress.adapters.kafka.producer import AdminTopics, ProducerLog
from waybill_ingress.adapters.kafka.replays import KafkaReplays
from waybill_ingress.adapters.kafka.replies import FollowedAnswers
from waybill_ingress.adapters.kafka.samples import KafkaSamples
from waybill_ingress.adapters.kafka.transactions import KafkaTransactions
from waybill_ingress.adapters.sealing_clock import RandomMint
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.connector_tokens import ConnectorTokens
from waybill_ingress.app.connectors import Connectors
from waybill_ingress.app.idempotency import IdempotentRequests
from waybill_ingress.app.measuring import forget
from waybill_ingress.app.merges import Merges
from waybill_ingress.app.proposals import Proposals
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.replays import Replays
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.app.watches import Watches
from waybill_ingress.app.webhook_gate import WebhookGate
from waybill_ingress.core.requests import Requests
from waybill_ingress.settings import Settings
from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.access.key_ring import load_key_ring
from waybill_shared.connections import places_in
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.http.app import create_app
from waybill_shared.http.names import HostNames
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.kafka.news import AllNews, News
from waybill_shared.kafka.shares import GroupShares
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_shared.topic_views.watches import WatchBook

HOUR_MS: Final = 3_600_000


def _repeats(
    settings: Settings, admin: KafkaAdmin, log: ProducerLog, mint: RandomMint
) -> tuple[KafkaRequestLog, KafkaTransactions, IdempotentRoutes]:
    """Build the log of requests with a key, their transactions, and what uses both."""
    prefix, kept_ms = settings.topic_prefix, settings.ingress_keys_kept_h * HOUR_MS
    kept = Requests(keys_max=settings.ingress_keys_max, kept_ms=kept_ms)
    requests = KafkaRequestLog(admin, prefix, log, kept, SystemClock())
    transactions = KafkaTransactions(admin, prefix, settings.producer_options())
    patience_ms = settings.ingress_key_patience_s * 1000
    repeats = IdempotentRequests(requests, transactions, mint, patience_ms=patience_ms)
    return requests, transactions, IdempotentRoutes(repeats)


def _connectors(
    settings: Settings,
    stack: ExitStack,
    admin: KafkaAdmin,
    directory: PipelineDirectory,
    *,
    registry: Registry,
    mint: RandomMint,
    fetcher: FileFetcher,
) -> tuple[Connectors, TopicFollower[ConnectorProgress], KnownConnectors]:
    """Build what fetches files, the follower of its progress, and what is known of it."""
    prefix, known = settings.topic_prefix, KnownConnectors()
    follower = stack.enter_context(
        TopicFollower(admin.cluster, settings.topic("connectors"), ConnectorProgress, known.accept)
    )
    shares = GroupShares(admin, settings.topic("pipelines"), f"{prefix}.connectors")
    connectors = Connectors(
        directory,
        registry,
        known,
        mint,
        settings.file_limits,
        log=KafkaConnectorLog(admin, prefix, SystemClock()),
        fetcher=fetcher,
        shares=stack.enter_context(shares),
    )
    return connectors, follower, known


def _pipelines(
    settings: Settings, stack: ExitStack, kafka: Kafka, directory: PipelineDirectory
) -> TopicFollower[PipelineRecord]:
    def accept(record: PipelineRecord) -> None:
        directory.accept(record)
        if record.desired == "deleted":
            forget(record.name)

    return stack.enter_context(
        TopicFollower(kafka, settings.topic("pipelines"), PipelineRecord, accept)
    )


def _watches(
    settings: Settings,
    stack: ExitStack,
    kafka: Kafka,
    owners: PipelineDirectory,
    *,
    of_pipelines: News,
    log: ProducerLog,
    mint: RandomMint,
) -> tuple[Watches, TopicFollower[TokenWatch]]:
    """Build what opens and closes watches, and the follower of all watches."""
    book, topic = WatchBook(with_tokens=False), settings.topic("watches")
    follower = stack.enter_context(TopicFollower(kafka, topic, TokenWatch, book.accept))
    gate = WebhookGate(settings.webhook_rules, HostNames())
    news = AllNews(News(follower), of_pipelines)
    watches = Watches(book, news, log, gate, owners, mint=mint, vault=mint, topic=topic)
    return watches, follower


def build(settings: Settings, stack: ExitStack) -> tuple[FastAPI, Event, FollowedAnswers]:
    """Build the application, the event that it has failed for good, and the answers it waits for.

    `stack` closes what is started here.
    """
    failed, directory, clock = Event(), PipelineDirectory(), SystemClock()
    ring = load_key_ring(settings.token_keys_file)
    keys = keys_in_force(settings.api_keys_file)
    kafka = settings.kafka_cluster()
    admin = make_admin(kafka)
    require_access(admin, "ingress", settings.topic_prefix)
    log = stack.enter_context(ProducerLog(kafka, settings.producer_options(), on_fatal=failed.set))

    follower = _pipelines(settings, stack, kafka, directory)
    prefix, topics, mint = settings.topic_prefix, AdminTopics(admin), RandomMint(ring, clock)
    fetcher = FileFetcher(settings.fetch_limits, settings.connections_file)
    registry = Registry(directory, News(follower), topics, mint)
    answers = FollowedAnswers(
        kafka, prefix, follower, registry.note_answered, since_ms=clock.now_ms()
    )
    records = Records(registry, log, topics, mint, settings.row_limits, spool=RecordSpool)
    requests, transactions, repeats = _repeats(settings, admin, log, mint)
    replays = Replays(
        registry, KafkaDeadLetterLookup(kafka, admin), KafkaReplays(admin, prefix), mint, vault=mint
    )
    connectors, fetched, known = _connectors(
        settings, stack, admin, directory, registry=registry, mint=mint, fetcher=fetcher
    )
    commands, tokens = (
        Commands(
            registry,
            log,
            mint,
            prefix,
            fetcher=fetcher,
            places=lambda: places_in(settings.connections_file),
        ),
        TokenIssuer(registry, topics, mint),
    )
    watches, watched = _watches(
        settings, stack, kafka, directory, of_pipelines=News(follower), log=log, mint=mint
    )
    of_connectors = ConnectorTokens(registry, tokens, mint, known, News(fetched))
    routers = [
        records_router(records, repeats, settings.body_limits),
        tokens_router(tokens, Merges(mint), of_connectors, repeats),
        pipelines_router(commands, answers, repeats),
        validate_router(commands, answers),
        maintain_router(commands, answers, repeats),
        logs_router(commands, answers),
        replays_router(replays, repeats),
        feldera_router(records, tokens, registry, repeats, limits=settings.body_limits),
        feldera_connectors_router(of_connectors, registry),
        feldera_commands_router(commands, answers, registry, repeats),
        watches_router(watches, repeats),
        convert_router(),
        propose_router(Proposals(topics, KafkaSamples(kafka, admin), prefix)),
    ]
    health = Health(
        checks={
            "kafka": log.check,
            "pipelines": follower.check,
            "keys": requests.check,
            "connectors": fetched.check,
            "watches": watched.check,
        }
    )

    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncIterator[None]:
        async with answers.run(app), requests.run(), connectors.running():
            yield
            await transactions.close()

    app = create_app(
        "ingress", routers, health, run, keys, origins=settings.cors_origins, hosts=settings.hosts
    )
    return app, failed, answers
