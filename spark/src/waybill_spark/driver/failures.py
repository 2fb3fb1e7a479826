"""What a driver's failure means: who must act, and what to do."""

from dataclasses import replace
from typing import Literal

from waybill_shared.contract.errors import ContractError, Problem, Retryable, UserError
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.words import StopReason
from waybill_spark.driver.jvm.cluster import ClusterUnavailable
from waybill_spark.driver.reading.decode_report import MalformedRecord, RuleBroken
from waybill_spark.driver.sql.value_errors import is_value_error, query_failed
from waybill_spark.tracking.checkpoint import CheckpointDamaged
from waybill_spark.tracking.dead_letters.records import QueryFailed
from waybill_spark.tracking.sink import SinkSuperseded, SinkUnreachable
from waybill_spark.tracking.stopping import StageStopped

Domain = Literal["user", "external", "internal"]


LOG = "the driver's log: `waybill logs PIPELINE`"
WAYS_OUT = 'see "A record that stops a stage" in docs/changing.md'


class StageFailed(ContractError):
    """A stage has ended by itself; the cause says why."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"stage {stage} ended")
        self.stage = stage


def cause_of(failure: Exception) -> BaseException:
    """Return why the stage ended, if the failure says no more than that it did."""
    return failure.__cause__ or failure if isinstance(failure, StageFailed) else failure


def is_of_stage(failure: BaseException) -> bool:
    """Return True if the failure is one stage's own and no new attempt mends it. The others can go
    on.

    A topic that is lost is no stage's own: others may write it, or read it, too.
    """
    if isinstance(failure, StageStopped):
        return isinstance(failure.reason, StopReason) and not failure.retryable
    own = isinstance(failure, UserError | MalformedRecord | RuleBroken | QueryFailed)
    return own or is_value_error(failure)


def for_the_log(cause: BaseException) -> dict[str, object]:
    """Return fields for the log.

    `expected` is True if it was raised on purpose: nobody needs its traceback to understand it.
    """
    said = describe(cause, None)
    expected = isinstance(cause, ContractError) or said.domain != "internal"
    return {"expected": expected, "reason": said.message}


def describe(failure: BaseException, stage: str | None) -> LifecycleError:
    """Describe who must act, what happened, where, and what to do."""
    sink = failure.sink if isinstance(failure, ContractError) else None
    said = query_failed(failure) if is_value_error(failure) else failure
    return replace(_describe(said, stage), sink=sink)


def _describe(failure: BaseException, stage: str | None) -> LifecycleError:
    match failure:
        case MalformedRecord() | RuleBroken():
            hint = f"mend the producer; to continue after this record, {WAYS_OUT}"
            return _error("user", str(failure), hint, stage, retryable=False)
        case StageStopped():
            domain: Domain = "internal" if failure.retryable else "user"
            return _error(domain, str(failure), failure.hint, stage, retryable=failure.retryable)
        case UserError():
            hints = "; ".join(problem.hint for problem in failure.problems if problem.hint)
            said = "; ".join(_with_place(problem) for problem in failure.problems)
            return _error("user", said, hints, stage, retryable=False)
        case QueryFailed():
            hint = f"use try_… in the query, or a WHERE; {WAYS_OUT}"
            return _error("user", str(failure), hint, stage, retryable=False)
        case CheckpointDamaged():
            hint = "the next start continues from what the sinks have"
            return _error("internal", str(failure), hint, stage, retryable=True)
        case SinkSuperseded():
            hint = "another driver runs this stage now"
            return _error("internal", str(failure), hint, stage, retryable=True)
        case SinkUnreachable():
            said_of = _error("external", str(failure), failure.hint, stage, retryable=True)
            return replace(said_of, retry_after_ms=int(failure.retry_after_s * 1000))
        case ClusterUnavailable():
            return _error("external", str(failure), failure.hint, stage, retryable=True)
        case Retryable():
            hint = f"it is tried again; if it goes on, see {LOG}"
            return _error("external", str(failure), hint, stage, retryable=True)
        case _:
            text = str(failure).split("\n", 1)[0][:500]
            hint = f"it is tried again; see {LOG}"
            return _error(
                "internal", f"{type(failure).__name__}: {text}", hint, stage, retryable=True
            )


def _with_place(problem: Problem) -> str:
    if problem.line is None:
        return problem.message
    return f"{problem.message} (line {problem.line}, column {problem.column})"


def _error(
    domain: Domain,
    message: str,
    hint: str,
    stage: str | None,
    *,
    retryable: bool,
) -> LifecycleError:
    return LifecycleError(
        domain=domain, message=message, hint=hint, stage=stage, retryable=retryable
    )
