"""The application of ingress over a Kafka in memory."""

from fastapi import FastAPI

from clocks import FixedClock
from unit.ingress.fakes import (
    RING,
    FakeAnswers,
    FakeDirectory,
    FakeFetcher,
    FakeKafka,
    FakeMint,
    FakeSamples,
    pipeline,
    source,
)
from unit.ingress.graves import FakeLetters, FakeReplayLog
from unit.ingress.repeating import World
from waybill_ingress.adapters.http.bodies import RecordSpool
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
from waybill_ingress.adapters.sealing_clock import RandomMint
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.connector_tokens import ConnectorTokens
from waybill_ingress.app.growth import InputGrowth
from waybill_ingress.app.idempotency import IdempotentRequests
from waybill_ingress.app.merges import Merges
from waybill_ingress.app.proposals import Proposals
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.renames import Renames
from waybill_ingress.app.replays import Replays
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.bodies.packed import BodyLimits, UnpackLimits
from waybill_ingress.core.rows import RowLimits
from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.http.app import create_app
from waybill_shared.process.health import Health
from waybill_shared.topic_views.connectors import KnownConnectors

BODY_BYTES_MAX = 1_000
PARTITIONS_MAX = 8
BODY_LIMITS = BodyLimits(
    bytes_max=BODY_BYTES_MAX, unpacked=UnpackLimits(bytes_max=BODY_BYTES_MAX, ratio_max=200)
)


def make_app(
    kafka: FakeKafka,
    keys: KeysInForce | None = None,
    answers: FakeAnswers | None = None,
    samples: FakeSamples | None = None,
    letters: FakeLetters | None = None,
    known_pipeline: PipelineRecord | None = None,
) -> FastAPI:
    mint = FakeMint()
    directory = FakeDirectory(known_pipeline or pipeline(source()))
    known = Registry(directory, directory, kafka, mint)
    limits = RowLimits(records_max=10, record_bytes_max=500, bytes_max=10_000_000)
    writer = Records(known, kafka, kafka, mint, limits, spool=RecordSpool)
    sealing = RandomMint(RING, FixedClock())
    graves = letters or FakeLetters()
    replays = Replays(known, graves, FakeReplayLog(), sealing)
    commands, told = (
        Commands(known, kafka, mint, "waybill", fetcher=FakeFetcher(), places=dict),
        answers or FakeAnswers(),
    )
    renames = Renames(known, commands, told)
    process = World().process()
    repeats = IdempotentRoutes(IdempotentRequests(process, process, process, patience_ms=1_000))
    issuer = TokenIssuer(known, kafka, mint)
    of_connectors = ConnectorTokens(known, issuer, mint, KnownConnectors(), directory)
    routers = [
        records_router(writer, repeats, BODY_LIMITS),
        tokens_router(issuer, Merges(sealing, sealing), of_connectors, repeats),
        pipelines_router(commands, renames, told, repeats),
        renames_router(commands, renames, told, repeats),
        validate_router(commands, told),
        maintain_router(commands, told, repeats),
        offsets_router(commands, told, repeats),
        logs_router(commands, told),
        replays_router(replays, repeats),
        growth_router(InputGrowth(known, kafka, mint, partitions_max=PARTITIONS_MAX)),
        convert_router(),
        propose_router(Proposals(kafka, samples or FakeSamples(), "waybill")),
    ]
    return create_app("ingress", routers, Health(), keys=keys)
