"""Dead letters as they stand in their topics, and as they are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from message_builders import make_letter_headers
from unit.status.slots import UID
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.dead_letters import Headers, LetterId
from waybill_status.app.dead_letters.reading import DeletedDeadLetter, Take
from waybill_status.core.dead_letters.dead_letter_view import DeadLetterSummary, DeadRecord
from waybill_status.core.dead_letters.pages import Bounds, Partition
from waybill_status.core.outcomes.dead_letters import LetterPlace

TOPIC = "orders.in.dlq"
TOLD: dict[str, str | None] = {
    named.PARTITION: "1",
    named.OFFSET: "41",
    named.UID: UID,
    named.STAGE: "enrich",
    named.REASON: "violated",
    named.RULE: "positive",
    named.MESSAGE: "amount > 0 is not true",
    named.BATCH: "7f1a:3",
    named.ERROR: "violated",
}


def raw(
    offset: int = 3,
    *,
    partition: int = 0,
    at: int = 1_000,
    key: bytes | None = None,
    value: bytes | None = b"{}",
    own: Headers = (),
    told: Mapping[str, str | None] | None = None,
) -> DeadRecord:
    return DeadRecord(
        topic=TOPIC,
        partition=partition,
        offset=offset,
        at=at,
        key=key,
        value=value,
        headers=make_letter_headers({**TOLD, **(told or {})}, own=own),
    )


def letter(
    *, topic: str = TOPIC, partition: int = 0, offset: int = 3, at: int = 1_000
) -> DeadLetterSummary:
    return DeadLetterSummary(
        id=f"{topic}:{partition}:{offset}:41",
        topic=topic,
        partition=partition,
        offset=offset,
        at=at,
        stage="enrich",
        sink=None,
        reason="violated",
        rule="positive",
        message="amount > 0 is not true",
        source=LetterPlace(topic="orders.in", partition=1, offset=41),
        key=None,
        value="{}",
        truncated=False,
        not_replayable=None,
        replayed_as=None,
    )


@dataclass
class FakeTopics:
    """`DeadTopics` in memory."""

    letters: list[DeadRecord] = field(default_factory=list)
    starts: dict[Partition, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def bounds(self, topics: object, since_ms: int | None) -> Bounds:
        assert isinstance(topics, list)
        self.asked = topics
        ends: dict[Partition, int] = {}
        for each in self.letters:
            ends[each.topic, each.partition] = each.offset + 1
        return {place: (self.starts.get(place, 0), end) for place, end in ends.items()}

    async def read(self, asked: Bounds, take: Take) -> dict[Partition, list[DeadLetterSummary]]:
        found: dict[Partition, list[DeadLetterSummary]] = {}
        for place, (start, end) in asked.items():
            mine = [r for r in self.letters if (r.topic, r.partition) == place]
            taken = [take(each) for each in mine if start <= each.offset < end]
            found[place] = [each for each in taken if each is not None]
        return found

    async def one(self, id: LetterId) -> DeadRecord | DeletedDeadLetter | None:
        if id.offset < self.starts.get((id.topic, id.partition), 0):
            return DeletedDeadLetter(since=1_795_251_600_120)
        return next((r for r in self.letters if r.offset == id.offset), None)
