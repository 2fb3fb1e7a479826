"""Versions of a sink that go, as snapshots expire: whoever asks for a token is to hear of it."""

from dataclasses import dataclass, field

from unit.waybill_spark.bench import ListSink
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.events import Commit
from waybill_shared.process.clock import SystemClock
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.sink import MaintenanceResult


@dataclass
class Forgetful(ListSink):
    versions_from: int = 0
    kept: MaintenanceResult | None = None

    def maintain(self) -> MaintenanceResult | None:
        return self.kept


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
    ledger.maintain()
    assert told.commits == [], "nothing stands there"

    ledger.set_aside((), None)
    assert [commit.versions_from for commit in told.commits] == [0]
    ledger.maintain()
    sink.versions_from = 3
    ledger.maintain()
    ledger.maintain()
    assert [commit.versions_from for commit in told.commits] == [0, 3]


def test_what_a_task_has_done_is_told_with_its_sink() -> None:
    sink = Forgetful("lake", kept=MaintenanceResult("compact", {"files": 12}))
    maintenance = TableMaintenance(stage="load", sink="lake", task="compact", done={"files": 12})
    assert Told().ledger(sink).maintain() == maintenance


def test_why_a_task_was_not_done_is_told_with_its_sink() -> None:
    sink = Forgetful("lake", kept=MaintenanceResult("compact", {}, "its clock"))
    maintenance = Told().ledger(sink).maintain()
    assert maintenance is not None
    assert (maintenance.done, maintenance.problem) == ({}, "its clock")


def test_a_sink_without_versions_tells_none() -> None:
    told = Told()
    ledger = told.ledger(ListSink("out"))
    ledger.set_aside((), None)
    assert ledger.maintain() is None
    assert [commit.versions_from for commit in told.commits] == [0]
