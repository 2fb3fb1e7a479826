"""What a driver reports: of each commit, and at last of the sinks that a change removes."""

from typing import TYPE_CHECKING

from sim.stages import open_journal, open_sink
from waybill_shared.contract.events import Commit, Fact, StageDefinition
from waybill_spark.driver.closing import _report as report_last
from waybill_spark.driver.closing import find_staying, refuse_before_start
from waybill_spark.driver.definitions import later_sinks, stage_inputs
from waybill_spark.tracking.ledger import Ledger

if TYPE_CHECKING:
    from sim.driver import Driver


def report_closing(driver: "Driver") -> None:
    """As `report_last` does it."""
    for definition in driver.closing:
        stays = find_staying(definition, driver.record.stages)
        refuse_before_start(_ledgers(driver, definition), _ledgers(driver, stays))
    for definition in driver.closing:
        if not find_staying(definition, driver.record.stages).sinks:
            open_journal(definition, driver).claim()
        for ledger in _ledgers(driver, definition):
            ledger.sink.claim()
            ledger.read()
            report_last(ledger)


def fact_of(driver: "Driver", commit: Commit) -> Fact:
    return Fact(
        tenant=driver.record.tenant,
        pipeline_uid=driver.record.pipeline_uid,
        generation=driver.record.generation,
        at=driver.clock.now_ms(),
        body=commit,
    )


def _ledgers(driver: "Driver", definition: StageDefinition) -> list[Ledger]:
    later = later_sinks(definition)
    return [
        Ledger(
            open_sink(definition, sink.name, driver),
            stage=definition.name,
            inputs=stage_inputs(definition),
            later=later.get(sink.name),
            identity=driver.identity,
            emit=driver.emit_surely,
            clock=driver.clock,
        )
        for sink in definition.sinks
    ]
