"""What a token covers, and when there is none."""

import asyncio
from dataclasses import replace

import pytest

from message_builders import make_reply
from unit.ingress.fakes import MANIFEST, NEW_ID, FakeKafka, offsets, pipeline, source, span
from unit.ingress.world import World, position
from waybill_ingress.app.low_offsets import FLOOR_AGE_MS_MAX
from waybill_ingress.app.registry import APPLIED_AGE_MS_MAX
from waybill_ingress.app.tokens import END_RETRY_MS
from waybill_ingress.core.rows import Rejection
from waybill_ingress.core.token_coverage import NamedSpan
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord


def test_a_token_covers_what_was_delivered() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(ends_now={0: 7, 1: 3}))
    receipt = world.write()
    assert (receipt.accepted, receipt.rejected) == (3, [])
    (part,) = world.mint.parts
    assert part.generation == 2
    assert part.spans == (span(0, 7, 9), span(1, 3, 4))


def test_a_record_without_a_place_is_between_the_ends_before_and_after_it() -> None:
    kafka = FakeKafka(ends_now={0: 7, 1: 3}, hide_offsets=True)
    world = World(pipeline(source()), kafka=kafka)
    world.write()
    (part,) = world.mint.parts
    assert part.spans == (span(0, 7, 9), span(1, 3, 4))
    assert not part.counted


def test_a_record_without_a_place_is_covered_though_the_topic_has_lost_it() -> None:
    kafka = FakeKafka(ends_now={0: 7, 1: 3}, starts_after_write={0: 9}, hide_offsets=True)
    world = World(pipeline(source()), kafka=kafka)
    world.write()
    assert world.mint.parts[0].spans == (span(0, 7, 9), span(1, 3, 4))


def test_where_partitions_end_is_asked_again_only_when_that_is_old() -> None:
    kafka = FakeKafka(ends_now={0: 7, 1: 3}, hide_offsets=True)
    world = World(pipeline(source()), kafka=kafka)
    begins = []
    for later_ms in (0, FLOOR_AGE_MS_MAX - 1, 1):
        world.mint.now += later_ms
        world.write()
        begins.append(world.mint.parts[0].spans[0].start)
    assert begins == [7, 7, 11]


def test_where_a_topic_ended_says_nothing_of_the_next_one_of_that_name() -> None:
    kafka = FakeKafka(ends_now={0: 7, 1: 3}, hide_offsets=True)
    world = World(pipeline(source()), kafka=kafka)
    world.write()
    world.directory.records["orders"] = pipeline(
        replace(source(), topic_id=NEW_ID, bases=offsets(0, 0, topic_id=NEW_ID))
    )
    kafka.topic_id, kafka.ends_now = NEW_ID, {0: 1, 1: 0}
    world.write()
    assert [s.start for s in world.mint.parts[0].spans] == [1, 0]


@pytest.mark.parametrize("hidden", [False, True], ids=["placed", "without a place"])
def test_a_partition_that_did_not_grow_by_what_was_written_gives_no_token(hidden: bool) -> None:
    kafka = FakeKafka(ends_now={0: 7, 1: 3}, hide_offsets=hidden)
    world = World(pipeline(source()), kafka=kafka)
    world.write()
    kafka.ends_now = {0: 4, 1: 4}
    with pytest.raises(Retryable, match=r"have no token: orders\.in-0 seems"):
        world.write()


def test_an_end_of_before_the_write_gives_no_token() -> None:
    kafka = FakeKafka(ends_now={0: 7, 1: 3}, hide_offsets=True)
    world = World(pipeline(source()), kafka=kafka)
    world.write()
    kafka.later_ends = [{0: 8, 1: 4}]
    with pytest.raises(Retryable, match=r"have no token: orders\.in-0"):
        world.write()


def test_records_are_written_though_kafka_does_not_say_where_partitions_end() -> None:
    kafka = FakeKafka(ends_now={0: 7, 1: 3}, hide_offsets=True, ends_away=True)
    world = World(pipeline(source()), kafka=kafka)
    world.write()
    assert world.mint.parts[0].spans == (span(0, 0, 9), span(1, 0, 4))


def test_what_kafka_does_not_acknowledge_is_named_and_not_covered() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(failing={1: "not acknowledged by kafka: x"}))
    receipt = world.write(b'{"id": 1}\n{"id": 2}\nbad')
    assert receipt.accepted == 1
    assert [rejection.index for rejection in receipt.rejected] == [1, 2]
    assert receipt.rejected[0] == Rejection(1, "not acknowledged by kafka: x")
    assert world.mint.parts[0].spans == (span(0, 0, 1),)


def test_one_bad_record_refuses_all_of_an_atomic_request() -> None:
    world = World(pipeline(source()))
    with pytest.raises(Refusal, match="1 record does not fit") as refused:
        world.write(b'{"id": 1}\nbad\n{"id": 3}', atomic=True)
    assert refused.value.slug == "records_rejected"
    reason = "not JSON at character 1: Expecting value"
    assert refused.value.members["rejected"] == [{"index": 1, "reason": reason}]
    assert (world.kafka.written, world.mint.parts) == ([], [])
    assert world.write(b'{"id": 1}\n{"id": 3}', atomic=True).accepted == 2


def test_an_atomic_request_that_kafka_acknowledges_in_part_gets_no_token() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(failing={1: "away"}))
    said = "acknowledge 1 of 3 records: away; 2 are written, but have no token"
    with pytest.raises(Retryable, match=said):
        world.write(atomic=True)
    assert world.mint.parts == []


def test_an_atomic_request_of_which_kafka_never_takes_a_record_is_refused_for_good() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(failing={0: "away"}, refusing={1: "no key"}))
    with pytest.raises(Refusal, match=r"1 of 3 records .* 1 are written, but") as told:
        world.write(atomic=True)
    assert told.value.slug == "records_refused_by_kafka"
    assert [each["index"] for each in told.value.members["rejected"]] == [0, 1]  # type: ignore[attr-defined]
    assert world.mint.parts == []


def test_nothing_acknowledged_is_nobodys_token() -> None:
    kafka = FakeKafka(failing=dict.fromkeys(range(3), "not acknowledged by kafka: away"))
    world = World(pipeline(source()), kafka=kafka)
    with pytest.raises(Retryable, match="3 of 3 records: not acknowledged by kafka: away"):
        world.write()
    assert world.mint.parts == []


def test_what_kafka_will_never_take_is_the_senders_to_mend() -> None:
    kafka = FakeKafka(refusing={0: "no key"}, failing={1: "in a batch with it"})
    refusal = World(pipeline(source()), kafka=kafka).refusal(b'{"id": 1}\n{"id": 2}')
    assert refusal.slug == "records_refused_by_kafka"
    assert "set `key` of the input" in str(refusal.members["hint"])
    assert refusal.members["rejected"] == [
        {"index": 0, "reason": "no key"},
        {"index": 1, "reason": "in a batch with it"},
    ]


def test_all_rows_bad_produces_nothing() -> None:
    world = World(pipeline(source()))
    refusal = world.refusal(b'{"id": "x"}\nbad')
    assert refusal.slug == "records_rejected"
    assert [row["index"] for row in refusal.members["rejected"]] == [0, 1]  # type: ignore[attr-defined]
    assert world.kafka.written == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"bad", "the record does not fit input 'orders'"),
        (b"bad\nbad", "none of 2 records fits input 'orders'"),
        (b'bad\n{"id": 1}', "1 record does not fit input 'orders', so none of 2 is kept"),
        (b'bad\nbad\n{"id": 1}', "2 records do not fit input 'orders', so none of 3 is kept"),
    ],
)
def test_refused_records_are_counted_in_plain_words(body: bytes, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        World(pipeline(source())).write(body, atomic=True)
    assert refused.value.detail == said


def test_a_topic_recreated_before_the_write_is_not_written_to() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(topic_id=NEW_ID))
    assert world.refusal().slug == "topic_recreated"
    assert world.kafka.written == []


@pytest.mark.parametrize("becomes", [NEW_ID, ""])
def test_a_topic_recreated_while_writing_gives_no_token(becomes: str) -> None:
    world = World(pipeline(source()), kafka=FakeKafka(becomes=becomes))
    assert world.refusal().slug == "topic_recreated"
    assert world.mint.parts == []


def test_a_topic_is_not_called_recreated_while_brokers_do_not_agree() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(lags=2))
    with pytest.raises(Retryable, match="brokers do not agree"):
        world.write()
    assert world.kafka.written == []
    world.write()


def test_records_whose_topic_cannot_be_described_again_have_no_token() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(away_after_write=True))
    with pytest.raises(Retryable, match="the records are written, but have no token"):
        world.write()
    assert world.mint.parts == []


def test_the_id_is_asked_for_again_after_each_write() -> None:
    world = World(pipeline(source()))
    world.write()
    before = world.kafka.described
    world.write()
    assert world.kafka.described == before + 1


def test_what_is_not_known_is_told_with_what_is() -> None:
    world = World(pipeline(source()))
    refusal = world.refusal(name="order")
    assert (refusal.slug, refusal.members["known"]) == ("pipeline_not_found", ["orders"])
    refusal = world.refusal(to="order")
    assert (refusal.slug, refusal.members["known"]) == ("input_not_found", ["orders"])


@pytest.mark.parametrize("record", [pipeline(), pipeline(source(bases=()))])
def test_an_input_without_a_base_is_not_ready(record: PipelineRecord) -> None:
    assert World(record).refusal().slug == "input_not_ready"


def test_a_pipeline_applied_just_now_is_not_called_unknown() -> None:
    world = World()
    asyncio.run(world.commands.apply(ANYONE, "orders", MANIFEST, "r"))
    assert world.refusal().slug == "pipeline_not_ready"
    world.mint.now += APPLIED_AGE_MS_MAX
    assert world.refusal().slug == "pipeline_not_found"


@pytest.mark.parametrize("state", ["done", "failed"])
def test_a_pipeline_whose_apply_was_answered_is_what_is_known_of_it(state: str) -> None:
    """A first apply that is refused leaves nothing, also not a promise that it comes."""
    world = World()
    operation = asyncio.run(world.commands.apply(ANYONE, "orders", MANIFEST, "r"))
    world.registry.note_answered(make_reply(state, id="of another one"))
    assert world.refusal().slug == "pipeline_not_ready"
    world.registry.note_answered(make_reply(state, id=str(operation)))
    assert world.refusal().slug == "pipeline_not_found"


def test_a_token_for_an_input_holds_all_until_now() -> None:
    world = World(pipeline(source(bases=(2, 0))), kafka=FakeKafka(ends_now={0: 5, 1: 0}))
    asyncio.run(world.tokens.for_input(ANYONE, "orders", "orders"))
    (part,) = world.mint.parts
    assert part.spans == (span(0, 2, 5),)
    assert not part.counted


def test_what_retention_has_removed_is_not_held_now() -> None:
    kafka = FakeKafka(starts_now={0: 3}, ends_now={0: 5, 1: 0})
    world = World(pipeline(source(bases=(0, 0))), kafka=kafka)
    asyncio.run(world.tokens.for_input(ANYONE, "orders", "orders"))
    assert world.mint.parts[0].spans == (span(0, 3, 5),)


def test_all_that_an_input_holds_begins_where_its_last_sink_has_part() -> None:
    later = replace(source(), whole=offsets(4, 1))
    world = World(pipeline(later), kafka=FakeKafka(ends_now={0: 6, 1: 1}))
    asyncio.run(world.tokens.for_input(ANYONE, "orders", "orders"))
    assert world.mint.parts[0].spans == (span(0, 4, 6), span(1, 1, 1))


def test_a_token_for_an_empty_input_begins_where_the_input_begins() -> None:
    world = World(pipeline(source(bases=(0, 0))))
    asyncio.run(world.tokens.for_input(ANYONE, "orders", "orders"))
    assert world.mint.parts[0].spans == (span(0, 0, 0), span(1, 0, 0))


def test_positions_become_exact_spans() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(ends_now={0: 9, 1: 9}))
    spans = world.for_positions(position(1, 4, 5), position(0, 2, 6), position(0, 5, 8))
    assert spans == (span(0, 2, 8), span(1, 4, 5))
    assert not world.mint.assumed
    world.for_positions(position(1, 4, 5), position(0, 2, 6, topic_id=None))
    assert world.mint.assumed


@pytest.mark.parametrize(
    ("wrong", "slug"),
    [
        (position(0, 8, 10), "position_beyond_end"),
        (position(2, 0, 1), "partition_unknown"),
        (position(0, 0, 1, topic_id=NEW_ID), "topic_id_unknown"),
        (position(0, 0, 1, topic="other"), "topic_not_an_input"),
    ],
)
def test_a_position_that_is_not_there_gets_no_token(wrong: NamedSpan, slug: str) -> None:
    world = World(pipeline(source()), kafka=FakeKafka(ends_now={0: 9, 1: 9}))
    world.mint.step_ms = END_RETRY_MS
    with pytest.raises(Refusal) as refused:
        world.for_positions(position(0, 0, 1), wrong)
    assert refused.value.slug == slug
    assert world.mint.parts == []


def test_a_position_beyond_the_end_is_looked_at_again() -> None:
    kafka = FakeKafka(ends_now={0: 0, 1: 0}, later_ends=[{0: 0, 1: 0}, {0: 1, 1: 0}])
    assert World(pipeline(source()), kafka=kafka).for_positions(position(0, 0, 1)) == (
        span(0, 0, 1),
    )


def test_positions_of_a_recreated_topic_get_no_token() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(topic_id=NEW_ID, ends_now={0: 9, 1: 9}))
    with pytest.raises(Refusal) as refused:
        world.for_positions(position(0, 0, 1, topic_id=NEW_ID))
    assert refused.value.slug == "topic_recreated"


def test_an_input_that_a_stage_writes_takes_no_records() -> None:
    inner = replace(source("inner"), root=False)
    assert World(pipeline(source(), inner)).refusal(to="inner").slug == "input_not_found"


def test_a_process_that_does_not_know_every_pipeline_yet_says_so() -> None:
    """A pipeline that exists must not be called unknown, nor a command be sent to a wrong life."""
    world = World(kafka=None)
    world.directory.caught_up = False

    assert world.refusal().slug == "pipeline_not_ready"
    with pytest.raises(Refusal, match="does not know all pipelines yet"):
        asyncio.run(world.commands.apply(ANYONE, "orders", MANIFEST, "r1"))

    world.directory.caught_up = True
    assert world.refusal().slug == "pipeline_not_found"
