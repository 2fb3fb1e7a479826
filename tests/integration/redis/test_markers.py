"""Markers of transactions take offsets in the commits topic, and no reader is handed them."""

import uuid

from builders import ORDERS_ID, make_commit, make_fact
from integration.redis.servers import Valkey
from integration.redis.world import Pipeline, World, asked
from integration.waiting import eventually
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.codec import encode
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.slots import Keys
from waybill_shared.kafka.clients import make_producer


def tell_in_transaction(world: World, pipeline: Pipeline) -> None:
    """A batch of the first stage, as the last message of its partition; its marker comes behind."""
    around = world.surroundings
    options = {"transactional.id": f"{around.prefix}/{uuid.uuid4()}"}
    producer = make_producer(around.kafka, **options)
    producer.init_transactions()
    producer.begin_transaction()
    commit = make_commit({(ORDERS_ID, 0): pipeline.done}, sink="enriched", sequence=99)
    value = encode(make_fact(commit, uid=pipeline.uid))
    key = pipeline_key(DEFAULT_TENANT, pipeline.uid)
    producer.produce(f"{around.prefix}.commits", key=key, value=value)
    producer.commit_transaction()


def test_a_slot_is_rebuilt_though_a_marker_stands_last(world: World, valkey: Valkey) -> None:
    pipeline = world.pipeline()
    token, _ = pipeline.complete_token()
    tell_in_transaction(world, pipeline)
    slot = Keys(world.surroundings.prefix).slot(DEFAULT_TENANT, pipeline.uid)
    with asked(world, token) as asker, valkey.client() as client:
        asker.hears(token, "complete")
        client.flushall()
        eventually(lambda: client.exists(slot))
        asker.hears(token, "complete")
