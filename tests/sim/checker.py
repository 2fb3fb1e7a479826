"""The invariants I1 to I12, held against what the sinks and the log really contain."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from shared.clock import Clock
from shared.errors import TokenRefused
from shared.events import Fence, PipelineRecord, Range, to_vector
from shared.settings import DEFAULT_TENANT
from shared.slots import NON_FINAL_AGE_MS_MAX
from shared.tokens import Token
from shared.vectors import Span, TopicPartition
from sim.clients import Issued, Status, forgeries
from sim.contents import Contents, fence_key
from sim.log import Cluster, Place, Row
from sim.redis_server import RedisServer
from sim.shapes import effects, required
from sim.sinks import Batch, Storage
from status.core.outcomes import FINAL, Kind, Lost, Outcome

FIRST_GENERATION = 1


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


class Around(Protocol):
    cluster: Cluster
    redis: RedisServer
    storage: Storage
    dice: Random

    @property
    def clock(self) -> Clock: ...

    def newest(self, uid: str) -> PipelineRecord: ...

    def base(self, uid: str, stage: str, place: TopicPartition) -> int: ...

    def say(self, text: str) -> None: ...

    def open(self, issued: Issued) -> Token: ...


class Checker:
    """Fulfils `Witness`; the clients tell it every birth and every answer."""

    def __init__(self, world: Around) -> None:
        self.violations: list[Violation] = []
        self._finals: dict[str, Kind] = {}
        self.answers: Counter[Kind] = Counter()
        self._world = world
        self._contents = Contents(world.cluster, world.storage)
        self._written: dict[str, set[Row]] = {}
        self.lost: dict[str, Sequence[Lost]] = {}

    def final(self, issued: Issued) -> bool:
        return issued.text in self._finals

    def found(self, wanted: str | None) -> bool:
        """Whether there is a violation, of the invariant `wanted` if that is given."""
        return any(wanted in (None, violation.invariant) for violation in self.violations)

    def report(self, invariant: str, detail: str) -> None:
        self.violations.append(Violation(invariant, detail))
        self._world.say(f"VIOLATION {invariant}: {detail}")

    # Fences

    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None:
        self._world.say(f"{key} #{after.sequence} takes {_runs(after.inputs)}")
        self._check_contiguous(key, before, after)
        if batch is None:
            return
        self._check_read(key, after, batch)
        written = self._written.setdefault(key, set())
        doubled = [row for row in batch.rows if row in written]
        if doubled or len(set(batch.rows)) < len(batch.rows):
            self.report("I5", f"{key} gets rows again: {doubled}")
        written.update(batch.rows)

    def _check_contiguous(self, key: str, before: Fence | None, after: Fence) -> None:
        """I8: every step of the frontier is a range that was taken, or set aside, from its end."""
        uid, stage, _ = key.split("/")
        held = to_vector(before.frontier) if before is not None else {}
        taken = {(r.topic_id, r.partition): r for r in after.inputs}
        aside = [r for each in after.set_aside for r in each.ranges]
        for place, end in to_vector(after.frontier).items():
            at = held.get(place, self._world.base(uid, stage, place))
            run = taken.pop(place, None)
            if run is not None and run.start != at:
                self.report("I8", f"{key} stood at {at} of {place} and takes {_runs([run])}")
            at = _past(aside, place, run.end if run is not None else at)
            if at != end:
                self.report("I8", f"{key} moves from {at} to {end} of {place} without a reason")
        if taken:
            self.report("I8", f"{key} takes what its frontier does not pass: {taken}")

    def _check_read(self, key: str, after: Fence, batch: Batch) -> None:
        """I7, I4: a batch holds the committed records of its ranges' topics, and no others."""
        due = {
            Place(run.topic_id, run.partition, offset)
            for run in after.inputs
            for offset, entry in self._contents.entries(
                run.topic_id, run.partition, run.start, run.end
            )
        }
        ids = {run.topic_id for run in after.inputs}
        for place in set(batch.read) - due:
            what = "of another topic" if place.topic_id not in ids else "outside of its ranges"
            self.report("I7" if place.topic_id not in ids else "I8", f"{key} takes {place} {what}")
        for place in due - set(batch.read):
            self.report("I4", f"{key} says that it took {place}, and did not read it")

    # Births

    def born(self, issued: Issued, token: Token, ends: Mapping[TopicPartition, int]) -> None:
        """I6: the token covers exactly its request's records; or all that was there before it."""
        spans = [span for part in token.parts for span in part.spans]
        if issued.places is None:
            missing = [at for at, end in ends.items() if end and not _reach(spans, at, end)]
            if missing:
                self.report("I6", f"a token for the whole input does not reach {missing}")
            return
        due = {(p.topic_id, p.partition, p.offset) for p in issued.places}
        covered = set(_offsets(spans))
        if not due <= covered or (issued.exact and covered != due):
            self.report("I6", f"a token for {sorted(due)} covers {sorted(covered)}")

    # Answers

    def answered(self, issued: Issued, token: Token, outcome: Outcome | TokenRefused) -> None:
        if isinstance(outcome, TokenRefused):
            self.report("I10", f"a genuine token of {issued.uid} is refused")
            return
        kind = outcome.outcome
        self.answers[kind] += 1
        if kind == Kind.UNKNOWN:
            return
        self._check_known(issued, kind)
        self._check_final(issued, kind)
        self.lost[issued.text] = outcome.lost
        if kind == Kind.COMPLETE:
            self._check_complete(issued, token)

    def _check_final(self, issued: Issued, kind: Kind) -> None:
        """I3: an end is an end."""
        before = self._finals.get(issued.text)
        if before is not None and before != kind:
            self.report("I3", f"a token that was {before} is {kind}")
        if kind in FINAL:
            self._finals[issued.text] = kind

    def _check_known(self, issued: Issued, kind: Kind) -> None:
        """I12: only a slot that stands, is new enough and knows the generation can answer."""
        key = (DEFAULT_TENANT, issued.uid)
        stored = self._world.redis.stored.get(key)
        if stored is None or key not in self._world.redis.sound:
            self.report("I12", f"{kind} from a slot that was lost")
            return
        age = self._world.clock.now_ms() - stored.confirmed_at
        if kind == Kind.IN_PROGRESS and age > NON_FINAL_AGE_MS_MAX:
            self.report("I12", f"{kind} from a slot that is {age} ms old")
        if stored.slot.generation < issued.generation:
            self.report("I12", f"{kind} from a slot that does not know the generation")

    def _check_complete(self, issued: Issued, token: Token) -> None:
        """I1: all effects are there now. I9: and every hop's reader is past what it must read."""
        record = self._world.newest(issued.uid)
        numbers = {
            row.number for _, row in covered(self._world, self._contents, issued, record, token)
        }
        due: dict[str, set[Row]] = {}
        for stage, sink in required(record, issued.generation, issued.input_name):
            for number in numbers:
                rows = effects(issued.uid, record.stages, issued.input_name, number)
                due.setdefault(sink.name, set()).update(rows[stage.name, sink.name])
            missing = due.get(sink.name, set()) - self._contents.visible(issued.uid, stage, sink)
            if missing:
                self.report("I1", f"complete, but {sink.name} lacks {sorted(missing)[:3]}")
                if self._recreated(token):
                    self.report("I7", "and its topic is another one than it was")
        self._check_hops(issued, record, numbers)

    def _check_hops(self, issued: Issued, record: PipelineRecord, numbers: set[int]) -> None:
        for stage, sink in required(record, issued.generation, issued.input_name):
            key = fence_key(issued.uid, stage, sink)
            fence = self._contents.fence(key)
            passed = to_vector(fence.frontier) if fence is not None else {}
            for source in (s for s in stage.inputs if not s.root):
                for place, row in self._world.cluster.incarnations[source.topic_id].rows():
                    if row.number not in numbers or not row.path:
                        continue
                    own = all(step[:4] == issued.uid[:4] for step in row.path)
                    if own and passed.get((place.topic_id, place.partition), 0) <= place.offset:
                        self.report("I9", f"complete, but {key} has not passed {place}")

    def _recreated(self, token: Token) -> bool:
        topics = self._world.cluster
        ids = {span.topic_id for part in token.parts for span in part.spans}
        return any(topics.identify(topics.incarnations[i].name) != i for i in ids)

    def forged(self, issued: Issued, status: Status) -> None:
        """I10: whatever is not ours is refused, and in one way."""
        for text in forgeries(issued.text, self._world.dice):
            outcome = status.ask(text)
            if not isinstance(outcome, TokenRefused) or str(outcome):
                self.report("I10", f"a forged token is answered: {outcome}")


def covered(
    world: Around, contents: Contents, issued: Issued, record: PipelineRecord, token: Token
) -> Iterator[tuple[Place, Row]]:
    """The records of a token that its pipeline has to process."""
    for span in (span for part in token.parts for span in part.spans):
        for offset, row in contents.entries(span.topic_id, span.partition, span.start, span.end):
            yield Place(span.topic_id, span.partition, offset), row


def _past(aside: Iterable[Range], place: TopicPartition, at: int) -> int:
    """Behind what was set aside at `at`, if anything was."""
    own = [r for r in aside if (r.topic_id, r.partition) == place and r.start <= at < r.end]
    return max((r.end for r in own), default=at)


def _reach(spans: Iterable[Span], at: TopicPartition, end: int) -> bool:
    return any(span.key == at and span.end >= end for span in spans)


def _offsets(spans: Iterable[Span]) -> Iterator[tuple[str, int, int]]:
    for span in spans:
        for offset in range(span.start or 0, span.end):
            yield (span.topic_id, span.partition, offset)


def _runs(ranges: Iterable[Range]) -> str:
    return " ".join(f"{r.topic}[{r.partition}]{r.start}-{r.end}" for r in ranges) or "nothing"
