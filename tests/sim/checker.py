"""The invariants, held against what the sinks and the log really contain: births and answers.

What sinks take is in `fences`, what must hold in the end in `endings` and `losses`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from sim.checked_world import Around, ToldLost, Violation
from sim.clients import Issued, Status, forgeries
from sim.contents import Contents, fence_key
from sim.effects import effects, required, writer_of
from sim.fences import Fences
from sim.log import Place, Row
from sim.readers import Readers, Sink
from sim.redis_server import Slots
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.errors import TokenRefused
from waybill_shared.contract.events import PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.slots import NON_FINAL_AGE_MS_MAX
from waybill_shared.contract.token_views import WHOLE, TokenView
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.topology import Topology
from waybill_shared.contract.vectors import Span, TopicPartition, join
from waybill_shared.contract.words import OutcomeKind, UnknownReason, WatchEnd
from waybill_status.core.outcomes.judgements import FINAL
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.views import SlotReading

NOT_KNOWN_NOW = frozenset(
    {
        UnknownReason.REDIS_AWAY,
        UnknownReason.SLOT_MISSING,
        UnknownReason.PIPELINE_NOT_KNOWN_YET,
    }
)
"""Why even an end that was told may be unknown for a while: what was known of it is lost."""


class Checker:
    """The clients tell it every birth and every answer."""

    def __init__(self, world: Around) -> None:
        self.violations: list[Violation] = []
        self._finals: dict[str, OutcomeKind] = {}
        self.answers: Counter[OutcomeKind] = Counter()
        self._world = world
        self._contents = Contents(world.cluster, world.storage)
        self.fences = Fences(world, self.report)
        self.lost: dict[str, ToldLost] = {}
        self._missing: dict[str, set[tuple[str, int, int]]] = {}
        """By token, all that was ever told to be lost."""
        self.settled = False
        """The faults are over and mended: all that was ever known is known now."""

    def final(self, issued: Issued) -> bool:
        return issued.text in self._finals

    def found(self, wanted: str | None) -> bool:
        """Whether there is a violation, of the invariant `wanted` if that is given."""
        return any(wanted in (None, violation.invariant) for violation in self.violations)

    def report(self, invariant: str, detail: str) -> None:
        self.violations.append(Violation(invariant, detail))
        self._world.say(f"VIOLATION {invariant}: {detail}")

    # Births

    def born(self, issued: Issued, token: Token, ends: Mapping[TopicPartition, int]) -> None:
        """I6: the token covers exactly its request's records; or all that was there before it."""
        spans = [span for part in token.parts for span in part.spans]
        if issued.places is None:
            begins = self._begins(issued)
            missing = [
                at
                for at, end in ends.items()
                if end and not _reach(spans, at, begins.get(at, 0), end)
            ]
            if missing:
                self.report("I6", f"a token for the whole input does not reach {missing}")
            return
        due = {(p.topic_id, p.partition, p.offset) for p in issued.places}
        covered = set(_offsets(spans))
        if not due <= covered or (issued.exact and covered != due):
            self.report("I6", f"a token for {sorted(due)} covers {sorted(covered)}")

    def _begins(self, issued: Issued) -> dict[TopicPartition, int]:
        """From where on every sink gets all that the input still holds, or held when it went."""
        begins: dict[TopicPartition, int] = {}
        for topic in self._world.cluster.incarnations.values():
            for number, partition in enumerate(topic.partitions):
                begins[topic.topic_id, number] = partition.start
        record = next(
            r
            for r in self._world.records
            if (r.pipeline_uid, r.generation) == (issued.uid, issued.generation)
        )
        for source in (i for stage in record.stages for i in stage.inputs):
            begins |= join(begins, source.whole)
        return begins

    # Answers

    def answered(self, issued: Issued, token: Token, outcome: Outcome | TokenRefused) -> None:
        if isinstance(outcome, TokenRefused):
            self.report("I10", f"a genuine token of {issued.uid} is refused")
            return
        kind = outcome.outcome
        self.answers[kind] += 1
        if kind == OutcomeKind.UNKNOWN:
            self._check_unknown(issued, outcome)
            return
        self._check_known(issued, kind)
        self._check_final(issued, kind)
        missing = self._missing.setdefault(issued.text, set())
        if not missing <= set(_offsets_lost(outcome)):
            self.report("I3", f"less is lost than was told before: {sorted(missing)[:3]}")
        missing.update(_offsets_lost(outcome))
        if kind == OutcomeKind.LOST:
            self.lost[issued.text] = ToldLost(outcome.lost, self._read(issued))
        if kind == OutcomeKind.COMPLETE:
            self._check_complete(issued, token)

    def told(self, issued: Issued, token: Token, outcome: Outcome | TokenRefused) -> None:
        """To somebody who waits. What is not final may be older than what others know by now."""
        if isinstance(outcome, TokenRefused):
            self.report("I10", f"a genuine token of {issued.uid} is refused")
        elif outcome.final:
            self._check_final(issued, outcome.outcome)
            self._missing.setdefault(issued.text, set()).update(_offsets_lost(outcome))
            if outcome.outcome == OutcomeKind.COMPLETE:
                self._check_complete(issued, token)

    def told_as(
        self, issued: Issued, token: Token, end: WatchEnd | OutcomeKind, asked: TokenView
    ) -> None:
        """To whoever reads events, or asks for a part of the way: I3, that an end is an end."""
        if end == WatchEnd.EXPIRED:
            self.report("I3", "a token that may be asked for has expired")
            return
        self._check_final(issued, OutcomeKind(end), asked)
        if end == WatchEnd.COMPLETE:
            self._check_complete(issued, token, asked)

    def _read(self, issued: Issued) -> SlotReading:
        return Slots(self._world.redis).reading((DEFAULT_TENANT, issued.uid))

    def _check_final(self, issued: Issued, kind: OutcomeKind, asked: TokenView = WHOLE) -> None:
        """I3: an end is an end."""
        what = issued.text if asked == WHOLE else f"{issued.text} {asked}"
        before = self._finals.get(what)
        if before is not None and before != kind:
            on = " ".join((*asked.sinks, *(step.pipeline for step in asked.through)))
            self.report("I3", f"a token that was {before} is {kind} {on}")
        if kind in FINAL:
            self._finals[what] = kind

    def _check_unknown(self, issued: Issued, outcome: Outcome) -> None:
        """I3: what was known for good is only unknown while nothing at all is known."""
        before = self._finals.get(issued.text)
        if before is not None and (self.settled or outcome.reason not in NOT_KNOWN_NOW):
            self.report("I3", f"a token that was {before} is unknown: {outcome.reason}")

    def _check_known(self, issued: Issued, kind: OutcomeKind) -> None:
        """I12: only a slot that stands, is new enough and knows the generation can answer."""
        key = (DEFAULT_TENANT, issued.uid)
        stored = self._world.redis.stored.get(key)
        if stored is None or key not in self._world.redis.sound:
            self.report("I12", f"{kind} from a slot that was lost")
            return
        age = self._world.clock.now_ms() - stored.confirmed_at
        if kind == OutcomeKind.IN_PROGRESS and age > NON_FINAL_AGE_MS_MAX:
            self.report("I12", f"{kind} from a slot that is {age} ms old")
        if stored.slot.generation < issued.generation:
            self.report("I12", f"{kind} from a slot that does not know the generation")

    def _check_complete(self, issued: Issued, token: Token, asked: TokenView = WHOLE) -> None:
        """I1: all effects are there now. I9: and every hop's reader is past what it must read."""
        if asked.through:
            self._check_through(issued, token, asked)
            return
        record = self._world.newest(issued.uid)
        due: dict[str, set[Row]] = {}
        sinks: dict[str, tuple[StageDefinition, SinkDefinition]] = {}
        roots = set()
        for place, row in covered(self._contents, token):
            roots.add(row)
            for stage, sink in _asked(record, issued.generation, place.topic_id, asked):
                rows = effects(issued.uid, record.stages, issued.generation, place.topic_id, row)
                key = fence_key(issued.uid, stage, sink)
                sinks[key] = stage, sink
                due.setdefault(key, set()).update(rows[stage.name, sink.name])
        for key, (stage, sink) in sinks.items():
            missing = due[key] - self._contents.visible(issued.uid, stage, sink)
            missing -= self._read_on(issued, (stage, sink), missing)
            if missing:
                self.report("I1", f"complete, but {sink.name} lacks {sorted(missing)[:3]}")
                if self._recreated(token):
                    self.report("I7", "and its topic is another one than it was")
            self._check_hops(issued, stage, sink, roots)

    def _check_through(self, issued: Issued, token: Token, asked: TokenView) -> None:
        """I1 of what leads from pipeline to pipeline, as far as that is still there."""
        uid, generation = issued.uid, issued.generation
        here = {(place.topic_id, row) for place, row in covered(self._contents, token)}
        for step in asked.through:
            now = self._world.newest(step.uid)
            here = {
                written
                for at in here
                for written in _written(self._world.newest(uid), generation, at, now)
            }
            uid, generation = step.uid, step.generation
        record = self._world.newest(uid)
        for topic_id, row in here:
            rows = effects(uid, record.stages, generation, topic_id, row)
            for stage, sink in required(record, generation, topic_id):
                missing = rows[stage.name, sink.name] - self._contents.visible(uid, stage, sink)
                if missing:
                    detail = f"complete through {record.name}, but {sink.name} lacks {missing}"
                    self.report("I1", detail)

    def _read_on(self, issued: Issued, sink: Sink, rows: set[Row]) -> set[Row]:
        """What is gone with the sink's topic, and the token once waited for behind it."""
        records = [r for r in self._world.records if r.pipeline_uid == issued.uid]
        readers = Readers(records, issued.generation, self.fences.taken, self._contents)
        return {row for row in rows if readers.had(row, sink)}

    def _check_hops(
        self, issued: Issued, stage: StageDefinition, sink: SinkDefinition, roots: set[Row]
    ) -> None:
        key = fence_key(issued.uid, stage, sink)
        fence = self._contents.fence(key)
        passed = fence.frontier if fence is not None else {}
        for source in (s for s in stage.inputs if not s.root):
            copies: dict[Row, list[Place]] = {}
            for place, row in self._world.cluster.incarnations[source.topic_id].rows_ever():
                if row.path and writer_of(row)[1] > issued.generation:
                    continue  # of another life of the sink before it, which nobody waits for
                if _made_of(row, roots, issued.uid):
                    copies.setdefault(row, []).append(place)
            for places in copies.values():  # after a rewind there are several: the first counts
                if not any(passed.get((at.topic_id, at.partition), 0) > at.offset for at in places):
                    self.report("I9", f"complete, but {key} has not passed {places[0]}")

    def _recreated(self, token: Token) -> bool:
        topics = self._world.cluster
        ids = {span.topic_id for part in token.parts for span in part.spans}
        return any(topics.identify(topics.incarnations[i].name) != i for i in ids)

    def forged(self, issued: Issued, status: Status) -> None:
        """I10: whatever is not ours is refused, and in one way."""
        for text in forgeries(issued.text, self._world.dice):
            outcome = status.ask(text)
            if not isinstance(outcome, TokenRefused) or str(outcome) != str(TokenRefused()):
                self.report("I10", f"a forged token is answered: {outcome}")


def _asked(
    record: PipelineRecord, generation: int, topic_id: str, asked: TokenView
) -> Iterator[tuple[StageDefinition, SinkDefinition]]:
    """Those that are waited for; of such as were named, those that are still there."""
    if not asked.sinks:
        yield from required(record, generation, topic_id)
        return
    for each in Topology(record.stages).awaited(topic_id, generation, asked.sinks):
        yield each.stage, each.sink


def _written(
    record: PipelineRecord, generation: int, at: tuple[str, Row], reader: PipelineRecord
) -> Iterator[tuple[str, Row]]:
    """What of a row comes to the root topics of the reader, and to which."""
    read = {i.topic_id for stage in reader.stages for i in stage.inputs if i.root}
    made = effects(record.pipeline_uid, record.stages, generation, *at)
    for stage, sink in required(record, generation, at[0]):
        if sink.topic_id in read:
            yield from ((sink.topic_id, row) for row in made[stage.name, sink.name])


def covered(contents: Contents, token: Token) -> Iterator[tuple[Place, Row]]:
    """The records of a token."""
    for span in (span for part in token.parts for span in part.spans):
        for offset, row in contents.entries(span.topic_id, span.partition, span.start, span.end):
            yield Place(span.topic_id, span.partition, offset), row


def _made_of(row: Row, roots: set[Row], uid: str) -> bool:
    """Whether the stages of that pipeline made it of one of these."""
    own = [step[:4] == uid[:4] for step in row.path]
    return any(all(own[at:]) and Row(row.number, row.path[:at]) in roots for at in range(len(own)))


def _reach(spans: Iterable[Span], at: TopicPartition, start: int, end: int) -> bool:
    return any(span.key == at and span.start <= start and span.end >= end for span in spans)


def _offsets(spans: Iterable[Span]) -> Iterator[tuple[str, int, int]]:
    for span in spans:
        for offset in range(span.start or 0, span.end):
            yield (span.topic_id, span.partition, offset)


def _offsets_lost(outcome: Outcome) -> Iterator[tuple[str, int, int]]:
    for lost in outcome.lost:
        for offset in range(lost.start, lost.end):
            yield (lost.topic, lost.partition, offset)
