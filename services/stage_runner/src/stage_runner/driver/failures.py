"""What a driver's failure means: who must act, and what to do."""

from typing import Literal

from shared.errors import Retryable, UserError
from shared.events import LifecycleError
from stage_runner.driver.cluster import ClusterUnavailable
from stage_runner.driver.decode import MalformedRecord
from waybill.spark.checkpoint import CheckpointDamaged
from waybill.spark.sinks import SinkSuperseded, SinkUnreachable
from waybill.spark.stopping import StageStopped

Domain = Literal["user", "external", "internal"]


LOG = "the driver's log: `waybill logs PIPELINE`"


class StageFailed(Exception):
    """A stage has ended by itself; the cause says why."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"stage {stage} ended")
        self.stage = stage


def describe(failure: BaseException, stage: str | None) -> LifecycleError:
    """Who must act, what happened, and what to do."""
    match failure:
        case MalformedRecord():
            hint = "mend the producer; a stage cannot skip a record yet, so it ends here"
            return _error("user", str(failure), hint, stage, retryable=False)
        case StageStopped():
            domain: Domain = "internal" if failure.retryable else "user"
            return _error(domain, str(failure), failure.hint, stage, retryable=failure.retryable)
        case UserError():
            hints = "; ".join(problem.hint for problem in failure.problems if problem.hint)
            return _error("user", str(failure), hints, stage, retryable=False)
        case CheckpointDamaged():
            hint = "the next start goes on where the sinks stand"
            return _error("internal", str(failure), hint, stage, retryable=True)
        case SinkSuperseded():
            hint = "another driver has taken over this stage"
            return _error("internal", str(failure), hint, stage, retryable=True)
        case SinkUnreachable() | ClusterUnavailable():
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
