"""A stage over any replays, batches and crashes: a letter is in each sink once, or dead again.

Or it is lost, because its request went with the topic.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import DataFrame

from strategies import patiently
from unit.waybill_spark.bench import NO_FRAME, ListSink
from unit.waybill_spark.graveyard import Graveyard, PickySink
from unit.waybill_spark.letters import AT, BOTH, FIRST, SECOND, Letters
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.vectors import ENDLESS, Vector, covers
from waybill_spark.tracking.stage import TrackedStage

OLD = 1_000
"""Records from here on died long ago: no batch reads them, and each has one message."""
SINKS = ((FIRST,), (SECOND,), BOTH)


@dataclass
class History:
    """Each step is a new driver. `mood`: what does not fit, or is refused, changes with it."""

    graveyard: Graveyard
    letters: Letters = field(init=False)
    gone: list[Letters] = field(default_factory=list)
    """Messages of topics that were created again."""
    asked: int = 0
    end: int = 0
    batch: int = 0

    def __post_init__(self) -> None:
        self.letters = Letters(self.graveyard)

    @property
    def sinks(self) -> dict[str, ListSink]:
        return {FIRST: self.graveyard.first, SECOND: self.graveyard.second}

    def ask(self, count: int, into: int) -> None:
        first = OLD + self.asked
        self.letters.ask(*range(first, first + count), sinks=SINKS[into])
        self.asked += count

    def create_topic_again(self) -> None:
        self.gone.append(self.letters)
        self.letters = Letters(self.graveyard, topic_id=f"P{len(self.gone) + 1}")

    def set_mood(self, mood: int) -> None:
        old = range(OLD, OLD + 100)
        self.graveyard.malformed = {n for n in old if mood and (n + mood) % 5 == 0}
        self.graveyard.failing = {n for n in old if mood and (n + mood) % 7 == 0}
        first = self.graveyard.first
        assert isinstance(first, PickySink)
        first.refusing = {n for n in old if mood and (n + mood) % 3 == 0}

    def step(self, kind: str, number: int, fails: int | None) -> None:
        """Start a driver, and let it replay or do a batch; a sink or the journal may be away."""
        sinks = [*self.sinks.values()]
        if fails is not None:
            self.graveyard.journal.dying = fails == 6
            sink = sinks[fails % 2]
            sink.failing.add((sink.fences[-1].batch.sequence if sink.fences else 0) + fails // 2)
        try:
            stage = self.graveyard.stage()
            stage.report_losses()
            starts = stage.resume()
            if kind == "replay":
                self._replay(stage, number)
            else:
                self._do_batch(stage, starts, number)
        except Retryable:
            pass
        self.graveyard.journal.dying = False
        for sink in sinks:
            sink.failing.clear()
            for one, after in pairwise(sink.fences):
                assert covers(after.replayed, one.replayed), "`replayed` goes back"

    def _replay(self, stage: TrackedStage[DataFrame], unseen: int) -> None:
        gone = {
            place
            for each in stage.replays_done()
            for place, end in each.items()
            if place[0] != self.letters.topic_id and end < ENDLESS
        }
        stage.replay(self.letters.begin(sorted(gone)), self.letters)
        upto = max(0, self.letters.end - unseen)
        if upto:
            stage.replay(self.letters.replays(upto), self.letters)

    def _do_batch(self, stage: TrackedStage[DataFrame], starts: Vector, size: int) -> None:
        if starts:
            self.batch = 0
        if not (self.graveyard.folder / "offsets" / str(self.batch)).exists():
            self.end += size
            self.graveyard.plan(self.batch, self.end, start=starts.get(("T1", 0), 0))
        self.graveyard.reading = ()
        stage.process(NO_FRAME, self.batch)
        (self.graveyard.folder / "commits").mkdir(exist_ok=True)
        (self.graveyard.folder / "commits" / str(self.batch)).write_text("v1\n{}")
        self.batch += 1

    def check(self) -> None:
        buried = self.graveyard.journal.buried
        asked = [(each.topic_id, m) for each in (*self.gone, self.letters) for m in each.messages]
        for topic_id, message in asked:
            offset = message.asked.letter.source
            for key, sink in self.sinks.items():
                causes = [each.cause for each in buried if each.record.offset == offset]
                dead = sum(cause.sink in (None, key) for cause in causes)
                if key not in message.asked.sinks:
                    named = [cause.sink for cause in causes]
                    assert sink.numbers.count(offset) == 0, f"{key} gets {offset}"
                    assert key not in named, f"{offset} is dead for {key}"
                    assert None not in named, f"{offset} is dead for all"
                    continue
                lost = topic_id != self.letters.topic_id and is_lost(sink, topic_id, message.offset)
                found = sink.numbers.count(offset) + max(dead, lost)
                assert found == 1, f"{offset} in {key}: {causes}, lost: {lost}"
        for sink in self.sinks.values():
            batches = [number for number in sink.numbers if number < OLD]
            assert batches == [*range(self.end)]
            now = (self.letters.topic_id, AT[1])
            assert sink.fences[-1].replayed.get(now, 0) <= self.letters.end


def is_lost(sink: ListSink, topic_id: str, offset: int) -> bool:
    """Return True if the sink has set it aside, or never noted which topic it is."""
    fence = sink.fences[-1]
    runs = [run for each in fence.set_aside for run in each.ranges if run.topic_id == topic_id]
    noted = (topic_id, AT[1]) in fence.replayed
    return not noted or any(run.start <= offset < run.end for run in runs)


steps = st.one_of(
    st.tuples(st.just("replay"), st.integers(0, 4), st.none() | st.integers(0, 6)),
    st.tuples(st.just("batch"), st.integers(1, 3), st.none() | st.integers(0, 6)),
    st.tuples(st.just("ask"), st.integers(1, 4), st.integers(0, 2)),
    st.tuples(st.just("mood"), st.integers(0, 4), st.none()),
    st.tuples(st.just("topic"), st.just(0), st.none()),
)


@patiently
@example([("ask", 1, 2), ("replay", 0, None), ("ask", 2, 0), ("topic", 0, None), ("ask", 1, 1)])
@given(st.lists(steps, max_size=14))
def test_every_letter_is_in_each_sink_that_it_names_once_or_dead_again(
    history: list[tuple[str, int, int | None]],
) -> None:
    with TemporaryDirectory() as folder:
        world = History(Graveyard(Path(folder) / "checkpoint"))
        world.step("batch", 1, None)
        for what, number, more in history:
            if what == "ask":
                world.ask(number, more or 0)
            elif what == "topic":
                world.create_topic_again()
            elif what == "mood":
                world.set_mood(number)
            else:
                world.step(what, number, more)
        for _ in range(3):  # what is left: a batch that is planned, and all replays
            world.step("replay", 0, None)
        world.step("batch", 1, None)
        world.check()
