"""The last word of a driver on the sinks that go, with a change or with their pipeline."""

from typing import TYPE_CHECKING

from sim.stages import open_journal, open_sink
from waybill_shared.contract.events import StageDefinition
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
