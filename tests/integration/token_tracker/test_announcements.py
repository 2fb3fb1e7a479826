"""What two trackers tell of facts, while shares go from one to the other and one is stopped."""

import threading
import uuid
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from builders import TENANT, make_commit, make_fact
from containers import Servers
from integration.waiting import eventually
from kafka_groups import group_offsets
from waybill_shared.contract import codec
from waybill_shared.contract.events import Fact, pipeline_key
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import make_producer, read_to_end
from waybill_shared.kafka.topics import create_topics
from waybill_token_tracker.adapters.announcements import KafkaEventSessions
from waybill_token_tracker.app.announcing import Announcer, SlotPosition

WITHIN_S = 120.0
PLACES = 16  # in two topics
PIPELINES = [str(uuid.uuid4()) for _ in range(12)]


class Standing:
    """Each slot has all."""

    def position_of(self, tenant: str, pipeline_uid: str) -> SlotPosition:
        return SlotPosition(1_000_000, pipeline_uid)


class Topics:
    def __init__(self, admin: KafkaAdmin) -> None:
        self.admin = admin
        self.prefix = f"told-{uuid.uuid4().hex[:8]}"
        create_topics(admin.cluster, self.prefix)
        self._producer = make_producer(admin.cluster)
        self.written: list[str] = []

    def write(self, sequences: Sequence[int], *, again: bool = False) -> None:
        for sequence in sequences:
            for uid in PIPELINES:
                fact = Fact(
                    tenant=TENANT,
                    pipeline_uid=uid,
                    generation=1,
                    at=make_fact(make_commit()).at,
                    body=make_commit(sequence=sequence),
                )
                self._producer.produce(
                    f"{self.prefix}.commits",
                    key=pipeline_key(TENANT, uid),
                    value=codec.encode(fact),
                )
                if not again:
                    self.written.append(f"{uid}.{sequence}")
        assert self._producer.flush(30) == 0

    def told(self) -> list[str]:
        """By pipeline and sequence, in their order."""
        found = []
        for message in read_to_end(self.admin.cluster, f"{self.prefix}.status", range(8)):
            event = codec.decode(StatusEvent, message.value() or b"")
            found.append(f"{event.pipeline}.{event.id.rpartition('.')[2]}")
        return found

    def announcer(self) -> Announcer:
        return Announcer(KafkaEventSessions(self.admin, self.prefix), Standing(), "/waybill/test")


@pytest.fixture
def topics(servers: Servers) -> Topics:
    return Topics(make_admin(servers.kafka))


def test_each_commit_is_told_while_trackers_come_and_go(topics: Topics) -> None:
    topics.write([0])  # of before there was a group: nobody's news
    topics.written.clear()
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(topics.announcer().run_in_thread())
        eventually(lambda: begun(topics), within_s=WITHIN_S)
        writing = threading.Thread(target=topics.write, args=(range(1, 40),))
        writing.start()
        second.enter_context(topics.announcer().run_in_thread())
        writing.join()
        topics.write([39], again=True)
        first.close()
        topics.write(range(40, 50))
        eventually(lambda: {*topics.told()} >= {*topics.written}, within_s=WITHIN_S)
        told = topics.told()
        assert {*told} == {*topics.written}
        for uid in PIPELINES:
            mine = [int(each.rpartition(".")[2]) for each in told if each.startswith(uid)]
            assert [*dict.fromkeys(mine)] == list(range(1, 50)), "in their order"
        assert len(told) <= len(topics.written) + len(PIPELINES), "again only what was said again"


def begun(topics: Topics) -> bool:
    """Its group has a place everywhere."""
    return len(group_offsets(topics.admin, f"{topics.prefix}.announcements")) == PLACES
