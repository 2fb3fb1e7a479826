"""Builds ingress: Kafka clients, the use cases, and the HTTP application over them."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from threading import Event
from typing import Final

from fastapi import APIRouter, FastAPI

from waybill_ingress.adapters.files.download import FileFetcher
from waybill_ingress.adapters.http.bodies import RecordSpool
from waybill_ingress.adapters.http.feldera import (
    feldera_commands_router,
    feldera_connectors_router,
    feldera_router,
)
from waybill_ingress.adapters.http.growth import growth_router
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.http.logs import logs_router
from waybill_ingress.adapters.http.maintain import maintain_router
from waybill_ingress.adapters.http.manifests import convert_router, propose_router, validate_router
from waybill_ingress.adapters.http.offsets import offsets_router
from waybill_ingress.adapters.http.pipelines import pipelines_router
from waybill_ingress.adapters.http.records import records_router, tokens_router
from waybill_ingress.adapters.http.renames import renames_router
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
from waybill_ingress.app.growth import InputGrowth
from waybill_ingress.app.idempotency import IdempotentRequests
from waybill_ingress.app.measuring import forget
from waybill_ingress.app.merges import Merges
from waybill_ingress.app.proposals import Proposals
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.renames import Renames
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
from waybill_shared.contract.former_names import names_of
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.http.app import create_app
from waybill_shared.http.names import HostNames
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.follower import FETCH_WAIT_MS, TopicFollower
from waybill_shared.kafka.news import AllNews, News
from waybill_shared.kafka.shares import GroupShares
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_shared.topic_views.watches import WatchBook

HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Basics:
    """What most use cases need."""

    settings: Settings
    stack: ExitStack
    kafka: Kafka
    admin: KafkaAdmin
    log: ProducerLog
    mint: RandomMint
    directory: PipelineDirectory
    pipelines: TopicFollower[PipelineRecord]
    topics: AdminTopics
    registry: Registry
    fetcher: FileFetcher

    @property
    def prefix(self) -> str:
        return self.settings.topic_prefix


def _basics(settings: Settings, stack: ExitStack, failed: Event) -> Basics:
    """Connect to Kafka. `failed` is set when its producer has failed for good."""
    ring, kafka = load_key_ring(settings.token_keys_file), settings.kafka_cluster()
    admin = make_admin(kafka)
    require_access(admin, "ingress", settings.topic_prefix)
    log = ProducerLog(kafka, settings.producer_options(), on_fatal=failed.set)
    directory, topics, mint = (
        PipelineDirectory(),
        AdminTopics(admin),
        RandomMint(ring, SystemClock()),
    )
    stack.enter_context(log)
    pipelines = _pipelines(settings, stack, kafka, directory)
    return Basics(
        settings=settings,
        stack=stack,
        kafka=kafka,
        admin=admin,
        log=log,
        mint=mint,
        directory=directory,
        pipelines=pipelines,
        topics=topics,
        registry=Registry(directory, News(pipelines), topics, mint),
        fetcher=FileFetcher(settings.fetch_limits, settings.connections_file),
    )


def _pipelines(
    settings: Settings, stack: ExitStack, kafka: Kafka, directory: PipelineDirectory
) -> TopicFollower[PipelineRecord]:
    def accept(record: PipelineRecord) -> None:
        directory.accept(record)
        for name in names_of(record):
            if record.desired == "deleted" or name != record.name:
                forget(name)

    topic, wait_ms = settings.topic("pipelines"), FETCH_WAIT_MS
    return stack.enter_context(
        TopicFollower(kafka, topic, PipelineRecord, accept, fetch_wait_ms=wait_ms)
    )


def _repeats(basics: Basics) -> tuple[KafkaRequestLog, KafkaTransactions, IdempotentRoutes]:
    """Build the log of requests with a key, their transactions, and what uses both."""
    settings, admin, prefix = basics.settings, basics.admin, basics.prefix
    kept_ms = settings.ingress_keys_kept_h * HOUR_MS
    kept = Requests(keys_max=settings.ingress_keys_max, kept_ms=kept_ms)
    requests = KafkaRequestLog(admin, prefix, basics.log, kept, SystemClock())
    transactions = KafkaTransactions(admin, prefix, settings.producer_options())
    patience_ms = settings.ingress_key_patience_s * 1000
    repeats = IdempotentRequests(requests, transactions, basics.mint, patience_ms=patience_ms)
    return requests, transactions, IdempotentRoutes(repeats)


def _connectors(
    basics: Basics,
) -> tuple[Connectors, TopicFollower[ConnectorProgress], KnownConnectors]:
    """Build what fetches files, the follower of its progress, and what is known of it."""
    settings, stack, known = basics.settings, basics.stack, KnownConnectors()
    topic, group = settings.topic("connectors"), f"{basics.prefix}.connectors"
    follower = TopicFollower(
        basics.kafka, topic, ConnectorProgress, known.accept, fetch_wait_ms=FETCH_WAIT_MS
    )
    shares = GroupShares(basics.admin, settings.topic("pipelines"), group)
    stack.enter_context(follower)
    connectors = Connectors(
        basics.directory,
        basics.registry,
        known,
        basics.mint,
        settings.file_limits,
        log=KafkaConnectorLog(basics.admin, basics.prefix, SystemClock()),
        fetcher=basics.fetcher,
        shares=stack.enter_context(shares),
    )
    return connectors, follower, known


def _watches(basics: Basics) -> tuple[Watches, TopicFollower[TokenWatch]]:
    """Build what opens and closes watches, and the follower of all watches."""
    book, topic = WatchBook(with_tokens=False), basics.settings.topic("watches")
    follower = TopicFollower(basics.kafka, topic, TokenWatch, book.accept)
    basics.stack.enter_context(follower)
    gate = WebhookGate(basics.settings.webhook_rules, HostNames())
    news, mint = AllNews(News(follower), News(basics.pipelines)), basics.mint
    watches = Watches(
        book, news, basics.log, gate, basics.directory, mint=mint, vault=mint, topic=topic
    )
    return watches, follower


def _record_routers(
    basics: Basics, tokens: TokenIssuer, of_connectors: ConnectorTokens, repeats: IdempotentRoutes
) -> list[APIRouter]:
    """Build the routes that write records, or give tokens for them."""
    settings, registry, mint = basics.settings, basics.registry, basics.mint
    limits, topics = settings.body_limits, basics.topics
    records = Records(registry, basics.log, topics, mint, settings.row_limits, spool=RecordSpool)
    letters = KafkaDeadLetterLookup(basics.kafka, basics.admin)
    replays = Replays(registry, letters, KafkaReplays(basics.admin, basics.prefix), mint)
    return [
        records_router(records, repeats, limits),
        tokens_router(tokens, Merges(mint, mint), of_connectors, repeats),
        replays_router(replays, repeats),
        feldera_router(records, tokens, registry, repeats, limits=limits),
        feldera_connectors_router(of_connectors, registry),
    ]


def _pipeline_routers(
    basics: Basics, answers: FollowedAnswers, repeats: IdempotentRoutes
) -> list[APIRouter]:
    """Build the routes that send commands to pipelines, or help to write a manifest."""
    file, registry, prefix = basics.settings.connections_file, basics.registry, basics.prefix
    commands = Commands(
        registry,
        basics.log,
        basics.mint,
        prefix,
        fetcher=basics.fetcher,
        places=lambda: places_in(file),
    )
    renames = Renames(registry, commands, answers)
    samples = KafkaSamples(basics.kafka, basics.admin)
    most = basics.settings.ingress_partitions_max
    growth = InputGrowth(registry, basics.topics, basics.mint, partitions_max=most)
    return [
        pipelines_router(commands, renames, answers, repeats),
        renames_router(commands, renames, answers, repeats),
        validate_router(commands, answers),
        maintain_router(commands, answers, repeats),
        offsets_router(commands, answers, repeats),
        logs_router(commands, answers),
        feldera_commands_router(commands, answers, registry, repeats),
        growth_router(growth),
        convert_router(),
        propose_router(Proposals(basics.topics, samples, prefix)),
    ]


def build(settings: Settings, stack: ExitStack) -> tuple[FastAPI, Event, FollowedAnswers]:
    """Build the application, the event that it has failed for good, and the answers it waits for.

    `stack` closes what is started here.
    """
    failed, keys = Event(), keys_in_force(settings.api_keys_file)
    basics = _basics(settings, stack, failed)
    pipelines, registry = basics.pipelines, basics.registry
    answers = FollowedAnswers(
        basics.kafka,
        basics.prefix,
        pipelines,
        registry.note_answered,
        since_ms=SystemClock().now_ms(),
    )
    requests, transactions, repeats = _repeats(basics)
    connectors, fetched, known = _connectors(basics)
    watches, watched = _watches(basics)
    tokens = TokenIssuer(registry, basics.topics, basics.mint)
    of_connectors = ConnectorTokens(registry, tokens, basics.mint, known, News(fetched))
    routers = [
        *_record_routers(basics, tokens, of_connectors, repeats),
        *_pipeline_routers(basics, answers, repeats),
        watches_router(watches, repeats),
    ]
    health = Health(
        checks={
            "kafka": basics.log.check,
            "pipelines": pipelines.check,
            "keys": requests.check,
            "connectors": fetched.check,
            "watches": watched.check,
        }
    )

    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncIterator[None]:
        async with answers.run(app), requests.run(), connectors.run():
            yield
            await transactions.close()

    app = create_app(
        "ingress", routers, health, run, keys, origins=settings.cors_origins, hosts=settings.hosts
    )
    return app, failed, answers
