"""Snapshots of slots in Kafka, however large."""

import uuid
from dataclasses import replace

from builders import make_snapshot
from integration.conftest import Surroundings
from integration.token_tracker.member import Member
from waybill_shared.contract.codec import decode
from waybill_shared.contract.events import Snapshot
from waybill_shared.contract.slots import Hop, SinkState, Slot, slot_to_json
from waybill_shared.contract.vectors import Span, Vector
from waybill_shared.kafka.clients import read_to_end
from waybill_token_tracker.core.snapshots import pack

HOPS = 512
PARTITIONS = 32


def offsets(topic_id: str, at: int) -> Vector:
    return {(topic_id, partition): at * 7919 + partition * 104 for partition in range(PARTITIONS)}


def gaps(topic_id: str, at: int) -> tuple[Span, ...]:
    return tuple(
        Span(topic_id=topic_id, partition=partition, start=end - 9, end=end - 1)
        for (_, partition), end in offsets(topic_id, at).items()
    )


def test_slot_with_all_the_hops_that_it_may_have_is_saved(surroundings: Surroundings) -> None:
    """Its JSON is larger than what brokers and clients take by default."""
    uid = str(uuid.uuid4())
    hops = tuple(
        Hop(
            sequence=number,
            inputs=offsets("R" * 22, number),
            outputs=offsets("A" * 22, number),
            gaps=gaps("A" * 22, number),
        )
        for number in range(HOPS)
    )
    slot = Slot(tenant="default", pipeline_uid=uid, sinks={"a/b": SinkState(hops=hops)})
    assert len(slot_to_json(slot)) > 1_500_000
    snapshot = make_snapshot(pack(slot, ()), uid=uid)
    kafka = surroundings.kafka
    member = Member(surroundings)
    try:
        member.feed_until(lambda: bool(member.tracker.partitions()))
        member.journal.save([snapshot], {0: 0})
    finally:
        member.close()
    stored = read_to_end(kafka, f"{surroundings.prefix}.frontiers", range(8))
    saved = [decode(Snapshot, message.value() or b"") for message in stored]
    assert replace(snapshot, topic_id=member.journal.topic_id) in saved
