"""Versions of a sink that go, as snapshots expire: whoever asks for a token is to hear of it."""

from dataclasses import dataclass, field

from unit.waybill_spark.bench import ListSink
from waybill_shared.contract.events import Commit
from waybill_shared.process.clock import SystemClock
from waybill_spark.commits import Identity
from waybill_spark.ledger import Ledger


@dataclass
class Forgetful(ListSink):
    versions_from: int = 0


@dataclass
class Told:
    commits: list[Commit] = field(default_factory=list)

    def ledger(self, sink: ListSink) -> Ledger:
        identity = Identity(tenant="default", pipeline_uid="uid", generation=1, epoch=1)
        made = Ledger(
            sink, stage="load", inputs=(), identity=identity, emit=self.commits.append,
            clock=SystemClock(),
        )  # fmt: skip
        made.claim()
        made.read()
        return made


def test_it_is_told_once_when_versions_have_gone() -> None:
    sink, told = Forgetful("lake"), Told()
    ledger = told.ledger(sink)
    ledger.tell_versions()
    assert told.commits == [], "nothing stands there"

    ledger.set_aside((), None)
    assert [commit.versions_from for commit in told.commits] == [0]
    ledger.tell_versions()
    sink.versions_from = 3
    ledger.tell_versions()
    ledger.tell_versions()
    assert [commit.versions_from for commit in told.commits] == [0, 3]


def test_a_sink_without_versions_tells_none() -> None:
    told = Told()
    ledger = told.ledger(ListSink("out"))
    ledger.set_aside((), None)
    ledger.tell_versions()
    assert [commit.versions_from for commit in told.commits] == [0]
