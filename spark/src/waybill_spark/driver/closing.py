"""The last report of sinks that are removed, with a change or with their pipeline: what they
contain. Without Spark.

A driver that was killed may have written a batch and not reported it; the tokens of that batch must
not end as lost.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from waybill_shared.contract.driver import RunSpec
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.events import StageDefinition
from waybill_spark.driver.dead_letter_journals import open_journal
from waybill_spark.driver.reporting import Reporter
from waybill_spark.driver.sql.planned import join
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.opening import find_start
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)


def report_last(spec: RunSpec, reporter: Reporter) -> None:
    """Claim each removed sink, and the journal of a removed stage, and report what the sinks have.

    After a claim no earlier driver can write there. Returns when Kafka has every report. Raises
    Retryable, or UserError if a sink may not be removed yet.
    """
    manifest = spec.manifest.model
    closing = join(manifest, spec.closing)
    for going in closing:
        stays = replace(going, definition=find_staying(going.definition, spec.stages))
        refuse_before_start(reporter.ledgers(going), reporter.ledgers(stays))
    for going in closing:
        if not find_staying(going.definition, spec.stages).sinks:
            journal = open_journal(spec, manifest, reporter.fences, going.definition)
            journal.claim()
            journal.close()
        for ledger in reporter.ledgers(going):
            ledger.claim()
            ledger.read()
            _report(ledger)
            ledger.sink.close()


def find_staying(going: StageDefinition, stages: Iterable[StageDefinition]) -> StageDefinition:
    """Return the stage of `going` with its other sinks only; none if the stage is removed
    itself.
    """
    removed = {sink.name for sink in going.sinks}
    (whole,) = (stage for stage in stages if stage.name == going.name)
    return replace(whole, sinks=tuple(sink for sink in whole.sinks if sink.name not in removed))


def refuse_before_start(going: Sequence[Ledger], staying: Sequence[Ledger]) -> None:
    """Raise a problem if the removed sinks are still needed to compute where a later sink starts.

    A later sink starts where the earlier ones are, so one that stays must have started before they
    are removed. It cannot start here: its table is made by the first driver that has Spark.

    Only reads, so that nothing has changed when the removal is refused.
    """
    if not staying or any(ledger.later is None for ledger in staying):
        return  # one that is as old as the stage defines where the others start
    for ledger in (*going, *staying):
        ledger.sink.claim()
        ledger.read()
        ledger.sink.close()
    if any(ledger.fence is not None for ledger in staying):
        return
    waiting = [each.sink.name for each in staying if find_start(each, going) is not None]
    if waiting:
        stage, removed = staying[0].stage, ", ".join(ledger.sink.name for ledger in going)
        message = (
            f"plan_incompatible: stage {stage} would lose {removed}, and {', '.join(waiting)} has"
            " not started: it starts where the others are, when the pipeline starts"
        )
        hint = "start the pipeline, and apply the change again when it has run"
        raise UserError([Problem(message=message, hint=hint)])


def _report(ledger: Ledger) -> None:
    try:
        ledger.close_for_good()
    except StageStopped as stopped:
        logger.warning("sink was deleted", extra={"sink": ledger.sink.name, "reason": str(stopped)})
        if ledger.fence is not None:  # else it is a table that nobody ever made
            ledger.close_for_good(topic_deleted=True)
    if ledger.hidden:
        raise Retryable(f"sink {ledger.sink.name}: an open transaction hides what was written")
