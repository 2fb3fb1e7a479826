"""What a tracker reads when it takes partitions over, and when the commits topic is another."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from builders import ORDERS_ID, TENANT, make_commit, make_definition, make_fact, make_snapshot
from integration.conftest import Surroundings
from integration.token_tracker.member import POLL_S, WITHIN_S, Member, reached
from integration.topics import create_anew
from message_builders import make_letter
from unit.token_tracker.fakes import FakeStore
from waybill_shared.contract import codec
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fact, Snapshot, pipeline_key
from waybill_shared.contract.slots import Slot
from waybill_shared.kafka import own_topics
from waybill_shared.kafka.clients import make_producer
from waybill_shared.kafka.own_topics import TopicRecreated
from waybill_shared.kafka.partitioner import partition_of
from waybill_token_tracker.core.snapshots import pack

PIPELINES = 40
SNAPSHOTS = 50  # of each
PARTITIONS = 8
LETTERS = 500  # of a fact
TURNS = 20
Join = Callable[..., Member]


@pytest.fixture
def join(around: Surroundings) -> Iterator[Join]:
    members: list[Member] = []

    def add(**own: FakeStore) -> Member:
        members.append(Member(around, **own))
        return members[-1]

    yield add
    for member in members:
        member.close()


def tell(around: Surroundings, *facts: Fact) -> None:
    producer = make_producer(around.kafka)
    for fact in facts:
        key = pipeline_key(fact.tenant, fact.pipeline_uid)
        producer.produce(f"{around.prefix}.commits", key=key, value=codec.encode(fact))
    assert producer.flush(30) == 0


def commit(taken: int, uid: str, *, sequence: int) -> Fact:
    return make_fact(make_commit({(ORDERS_ID, 0): taken}, sequence=sequence), uid=uid)


def test_only_the_newest_snapshot_of_each_pipeline_is_decoded(
    around: Surroundings, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    uids = [str(uuid.uuid4()) for _ in range(PIPELINES)]
    producer = make_producer(around.kafka)
    for _ in range(SNAPSHOTS):
        for uid in uids:
            key = pipeline_key(TENANT, uid)
            slot = Slot(tenant=TENANT, pipeline_uid=uid)
            place = partition_of(key, PARTITIONS)
            snapshot = make_snapshot(pack(slot, ()), partition=place, uid=uid)
            topic = f"{around.prefix}.frontiers"
            producer.produce(topic, key=key, value=codec.encode(snapshot))
    assert producer.flush(30) == 0
    decoded: list[object] = []
    decode = codec.decode

    def counted(kind: type[Snapshot], raw: bytes) -> Snapshot:
        decoded.append(kind)
        return decode(kind, raw)

    monkeypatch.setattr(codec, "decode", counted)
    member = join()
    member.feed_until(lambda: member.store.slots.keys() == set(uids))
    assert decoded.count(Snapshot) == PIPELINES


def test_facts_of_a_commits_topic_that_was_created_anew_are_not_dropped(
    around: Surroundings, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tracker knew stays known; and what it had read, and written to Redis, is no position
    in the new topic."""
    monkeypatch.setattr(own_topics, "CHECK_INTERVAL_S", 0.5)
    old, new = str(uuid.uuid4()), str(uuid.uuid4())
    many = [commit(5, old, sequence=number) for number in range(20)]
    tell(around, make_fact(make_definition(), uid=old), *many)
    first = join()
    first.feed_until(lambda: reached(first, old) == 5)

    create_anew(around, "commits")
    tell(around, make_fact(make_definition(), uid=new), commit(1, new, sequence=0))
    tell(around, commit(7, old, sequence=20))
    with pytest.raises(TopicRecreated):
        feed_through_faults(first)
    first.close()

    second = join(store=first.store)
    second.feed_until(lambda: reached(second, new) == 1 and reached(second, old) == 7)


def test_what_a_tracker_knows_outlives_the_topics_that_said_it(
    around: Surroundings, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, also what has long been in a snapshot: that is gone with its topic, too."""
    monkeypatch.setattr(own_topics, "CHECK_INTERVAL_S", 0.5)
    uid = str(uuid.uuid4())
    tell(around, make_fact(make_definition(), uid=uid), commit(5, uid, sequence=0))
    first = join()
    first.feed_until(lambda: reached(first, uid) == 5)
    first.tracker.save(whole=True)
    create_anew(around, "frontiers")
    create_anew(around, "commits")
    with pytest.raises(TopicRecreated):
        feed_through_faults(first)
    first.close()

    second = join()
    second.feed_until(lambda: reached(second, uid) == 5)


def feed_through_faults(member: Member) -> None:
    while True:
        try:
            member.feed_until(lambda: False)
        except Retryable:
            pass


def test_a_position_that_was_saved_late_does_not_hide_facts_of_the_new_topic(
    around: Surroundings, join: Join
) -> None:
    """Kafka forgets a group's offsets with the topic; a tracker may write them once more."""
    uid = str(uuid.uuid4())
    tell(around, make_fact(make_definition(), uid=uid))
    first = join()
    first.feed_until(lambda: uid in first.store.slots)
    create_anew(around, "commits")
    tell(around, commit(3, uid, sequence=0))
    first.tracker.save(whole=True)
    first.close()

    second = join()
    second.feed_until(lambda: reached(second, uid) == 3)


def test_without_its_snapshots_a_tracker_reads_all_facts_again(
    around: Surroundings, join: Join
) -> None:
    uid = str(uuid.uuid4())
    tell(around, make_fact(make_definition(), uid=uid), commit(3, uid, sequence=0))
    first = join()
    first.feed_until(lambda: reached(first, uid) == 3)
    first.tracker.save(whole=True)
    first.close()
    create_anew(around, "frontiers")

    second = join()
    second.feed_until(lambda: reached(second, uid) == 3)


def test_who_takes_over_finds_the_dead_letters_of_the_one_before(
    around: Surroundings, join: Join
) -> None:
    """In snapshots beside the slot, so many that they need several; and what was told since."""
    uid = str(uuid.uuid4())
    facts = [died(uid, number, LETTERS) for number in range(1, 5)]
    tell(around, make_fact(make_definition(), uid=uid), *facts, commit(3, uid, sequence=0))
    first = join()
    first.feed_until(lambda: reached(first, uid) == 3)
    first.tracker.save(whole=True)
    tell(around, died(uid, 5))
    first.feed_until(lambda: len(first.store.slots[uid].dead) == 4 * LETTERS + 1)
    first.close()

    second = join()
    second.feed_until(lambda: second.store.slots.get(uid) is not None)
    second.feed_until(lambda: len(second.store.slots[uid].dead) == 4 * LETTERS + 1)
    assert second.store.slots[uid].dead == first.store.slots[uid].dead
    assert second.store.slots[uid].slot.dead == first.store.slots[uid].slot.dead


def test_what_an_aborted_transaction_told_is_never_applied(
    around: Surroundings, join: Join
) -> None:
    """Its marker stands last, and a slot that was lost is written again all the same."""
    uid = str(uuid.uuid4())
    tell(around, make_fact(make_definition(), uid=uid), commit(3, uid, sequence=0))
    member = join()
    member.feed_until(lambda: reached(member, uid) == 3)
    journal = begin(around, died(uid, 1))
    journal.abort_transaction(WITHIN_S)
    member.store.slots.clear()
    member.tracker.confirm()
    member.feed_until(lambda: reached(member, uid) == 3)
    assert member.store.slots[uid].slot.dead_sequences == {}
    assert member.store.slots[uid].dead == []


def test_an_open_transaction_delays_what_comes_behind_it_and_loses_nothing(
    around: Surroundings, join: Join
) -> None:
    uid = str(uuid.uuid4())
    tell(around, make_fact(make_definition(), uid=uid))
    member = join()
    member.feed_until(lambda: uid in member.store.slots)
    journal = begin(around, died(uid, 1))
    tell(around, commit(3, uid, sequence=0))
    for _ in range(TURNS):
        member.stream.feed(POLL_S)
        member.tracker.flush()
    assert reached(member, uid) < 3
    journal.commit_transaction(WITHIN_S)
    member.feed_until(lambda: reached(member, uid) == 3)
    assert len(member.store.slots[uid].dead) == 1


def died(uid: str, sequence: int, count: int = 1) -> Fact:
    letters = tuple(
        make_letter(1_000 * sequence + at, message=uuid.uuid4().hex * 9)  # so that it takes room
        for at in range(count)
    )
    told = DeadLetters(stage="enrich", since=1, sequence=sequence, letters=letters)
    return make_fact(told, uid=uid)


def begin(around: Surroundings, fact: Fact) -> Producer:
    """As the journal of a stage: the fact stands there, and its transaction is open."""
    options = {"transactional.id": f"{around.prefix}/{uuid.uuid4()}"}
    producer = make_producer(around.kafka, **options)
    producer.init_transactions(WITHIN_S)
    producer.begin_transaction()
    key = pipeline_key(fact.tenant, fact.pipeline_uid)
    producer.produce(f"{around.prefix}.commits", key=key, value=codec.encode(fact))
    assert producer.flush(WITHIN_S) == 0
    return producer
