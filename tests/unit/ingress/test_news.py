"""What was told done is known: names and generations are looked up again before a refusal."""

import asyncio
from dataclasses import replace

import pytest

from unit.ingress.bodies import WholeBody
from unit.ingress.fakes import FakeDirectory, FakeKafka, FakeMint, pipeline, source
from waybill_ingress.adapters.http.bodies import RecordSpool
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.if_match import Demand, read_demand
from waybill_ingress.core.rows import RowLimits
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal

UID = "3f1d7f36-7a02-5e5a-9d0c-6a4a4b1b5a10"
LIMITS = RowLimits(records_max=10, record_bytes_max=1_000, bytes_max=10_000_000)


class World:
    def __init__(self, directory: FakeDirectory) -> None:
        self.directory, self.mint = directory, FakeMint()
        kafka = FakeKafka()
        self.registry = Registry(directory, directory, kafka, self.mint)
        self.records = Records(self.registry, kafka, kafka, self.mint, LIMITS, spool=RecordSpool)
        self.tokens = TokenIssuer(self.registry, kafka, self.mint)

    def write(self, demand: Demand | None = None, *, to: str = "orders") -> int:
        """The generation of the token."""
        written = self.records.write(
            ANYONE, "orders", to, WholeBody(b'{"id": 1}'), read_ndjson, demand=demand
        )
        assert asyncio.run(written).accepted == 1
        return self.mint.parts[0].generation

    def refusal(self, demand: Demand | None = None, *, to: str = "orders") -> str:
        with pytest.raises(Refusal) as refused:
            self.write(demand, to=to)
        return refused.value.slug


def test_a_pipeline_that_was_told_a_moment_ago_is_known() -> None:
    world = World(FakeDirectory())
    world.directory.told = [pipeline(source())]

    assert world.write() == 2


def test_an_input_that_was_told_a_moment_ago_is_known() -> None:
    world = World(FakeDirectory(pipeline(source())))
    world.directory.told = [replace(pipeline(source(), source("late")), generation=3)]

    asyncio.run(world.tokens.for_input(ANYONE, "orders", "late"))

    assert world.mint.parts[0].generation == 3


def test_the_uid_of_a_free_name_counts_every_life_that_was_told() -> None:
    directory = FakeDirectory()
    directory.told = [pipeline(source())]

    assert asyncio.run(World(directory).registry.life_for("default", "orders")).uid == "uid-1"


def test_what_is_known_asks_nothing() -> None:
    world = World(FakeDirectory(pipeline(source())))
    world.write()
    world.write(Demand(generation=2))

    assert world.directory.asked == 0


def test_without_news_no_check_takes_a_pipeline_for_a_new_one() -> None:
    world = World(FakeDirectory())
    assert asyncio.run(world.registry.known("default", "orders")) is None
    world.directory.kafka_away = True
    with pytest.raises(Refusal) as refused:
        asyncio.run(world.registry.known("default", "orders"))
    assert refused.value.slug == "pipeline_not_ready"


def test_without_news_nothing_is_called_unknown() -> None:
    world = World(FakeDirectory())
    world.directory.kafka_away = True

    assert world.refusal() == "pipeline_not_ready"
    world.directory.records["orders"] = pipeline(source())
    assert world.refusal(to="late") == "input_not_ready"
    assert world.write() == 2


@pytest.mark.parametrize("demand", [Demand(generation=3), Demand(generation=3, uid="uid-1")])
def test_below_the_generation_that_is_demanded_there_is_no_token(demand: Demand) -> None:
    world = World(FakeDirectory(pipeline(source())))

    assert world.refusal(demand) == "pipeline_behind"
    with pytest.raises(Refusal, match="generation 3 of pipeline orders is not known here yet"):
        asyncio.run(world.tokens.for_input(ANYONE, "orders", "orders", demand=demand))
    with pytest.raises(Refusal, match="this ingress knows generation 2"):
        asyncio.run(world.tokens.for_positions(ANYONE, "orders", [], demand=demand))

    world.directory.told = [replace(pipeline(source()), generation=3)]
    assert world.write(demand) == 3


def test_the_generation_of_a_life_that_is_over_is_no_demand_on_the_next_one() -> None:
    """Somebody else deleted the pipeline and applied it again: generations begin anew."""
    old = Demand(generation=9, uid=UID)
    world = World(FakeDirectory(pipeline(source())))
    assert world.refusal(old) == "pipeline_behind"

    ended = replace(pipeline(source()), pipeline_uid=UID, desired="deleted")
    world.directory.ended[UID] = ended

    assert world.write(old) == 2


def test_a_generation_is_read_as_an_etag() -> None:
    assert read_demand(None) is None
    assert read_demand("*") is None
    assert read_demand(' "3"') == Demand(generation=3)
    assert read_demand(f'"{UID}/3"') == Demand(generation=3, uid=UID)
    with pytest.raises(Refusal, match="is no generation") as refused:
        read_demand("3")
    assert refused.value.slug == "bad_if_match"
