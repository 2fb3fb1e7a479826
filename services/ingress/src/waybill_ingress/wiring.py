"""Builds ingress: Kafka, the use cases, and the application over them."""

from contextlib import ExitStack
from threading import Event

from fastapi import FastAPI

from waybill_ingress.adapters.http import records_router, tokens_router
from waybill_ingress.adapters.kafka import AdminTopics, ProducerLog
from waybill_ingress.adapters.letters import KafkaLetters
from waybill_ingress.adapters.mint import RandomMint
from waybill_ingress.adapters.pipelines_http import pipelines_router
from waybill_ingress.adapters.propose_http import propose_router
from waybill_ingress.adapters.replays import KafkaReplays
from waybill_ingress.adapters.replays_http import replays_router
from waybill_ingress.adapters.replies import FollowedAnswers
from waybill_ingress.adapters.samples import KafkaSamples
from waybill_ingress.adapters.validate_http import validate_router
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.measuring import forget
from waybill_ingress.app.merges import Merges
from waybill_ingress.app.proposals import Proposals
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.replays import Replays
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.settings import Settings
from waybill_shared.access.authentication import keys_in_force
from waybill_shared.access.kafka import require_access
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.pipelines import PipelineDirectory
from waybill_shared.contract.tokens import load_key_ring
from waybill_shared.http.app import create_app
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.kafka.news import News
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health


def build(settings: Settings, stack: ExitStack) -> tuple[FastAPI, Event, FollowedAnswers]:
    """The application, whether it has failed for good, and what its held requests wait for.

    `stack` ends what is started here.
    """
    failed, directory, clock = Event(), PipelineDirectory(), SystemClock()
    ring = load_key_ring(settings.token_keys_file)
    keys = keys_in_force(settings.api_keys_file)
    kafka = settings.kafka_cluster()
    admin = make_admin(kafka)
    require_access(admin, "ingress", settings.topic_prefix)
    log = stack.enter_context(ProducerLog(kafka, settings.producer_options(), on_fatal=failed.set))

    def accept(record: PipelineRecord) -> None:
        directory.accept(record)
        if record.desired == "deleted":
            forget(record.name)

    follower = stack.enter_context(
        TopicFollower(kafka, settings.topic("pipelines"), PipelineRecord, accept)
    )
    prefix = settings.topic_prefix
    topics, mint = AdminTopics(admin), RandomMint(ring, clock)
    registry = Registry(directory, News(follower), topics, mint)
    answers = FollowedAnswers(
        kafka, prefix, follower, registry.note_answered, since_ms=clock.now_ms()
    )
    records = Records(registry, log, topics, mint, settings.row_limits)
    replays = Replays(
        registry, KafkaLetters(kafka, admin), KafkaReplays(admin, prefix), mint, vault=mint
    )
    commands = Commands(registry, log, mint, prefix)
    bytes_max = settings.ingress_body_bytes_max
    routers = [
        records_router(records, body_bytes_max=bytes_max),
        tokens_router(TokenIssuer(registry, topics, mint), Merges(mint), body_bytes_max=bytes_max),
        pipelines_router(commands, answers),
        validate_router(commands, answers),
        replays_router(replays),
        propose_router(Proposals(topics, KafkaSamples(kafka, admin), prefix)),
    ]
    health = Health(checks={"kafka": log.check, "pipelines": follower.check})
    return create_app("ingress", routers, health, answers.run, keys), failed, answers
