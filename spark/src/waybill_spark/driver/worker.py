"""A driver at work: carries out runs and checks, one after the other, until it gets the order to
end.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, assert_never

from pyspark.sql import SparkSession

from waybill_shared.contract.driver import (
    CheckOrder,
    DriverEvent,
    DriverHome,
    EndOrder,
    MaintainOrder,
    RunOrder,
    RunSpec,
)
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.kafka.cluster import Kafka
from waybill_spark.driver.checking import ask_sinks
from waybill_spark.driver.explaining import explain
from waybill_spark.driver.failures import StageFailed, cause_of, for_the_log
from waybill_spark.driver.jvm.cluster import is_cluster
from waybill_spark.driver.maintenance import maintain
from waybill_spark.driver.orders import Orders
from waybill_spark.driver.run import Engine, PipelineRun
from waybill_spark.driver.sql.compile import CompiledStage, compile_pipeline, compile_stages
from waybill_spark.driver.warming import warm_up
from waybill_spark.guard.allowed import read_allowed

logger = logging.getLogger(__name__)

FIRST_ORDER_S: Final = 1.0  # a machine on which many drivers start receives one late
OUTPUTS: Final = (1, 2)  # where this process, and Spark's JVM through it, say what happens


class Worker:
    """`engine` is None in a driver without Spark."""

    def __init__(
        self,
        home: DriverHome,
        engine: Engine | None,
        kafka: Kafka,
        orders: Orders,
        report: Callable[[DriverEvent], None],
    ) -> None:
        self._home = home
        self._engine = engine
        self._kafka = kafka
        self._orders = orders
        self._report = report
        self._lists = read_allowed(home.sql_guard)
        self._checked: tuple[str, Sequence[CompiledStage]] = ("", ())
        """The manifest that was checked last, compiled: usually it is run next."""

    def serve(self) -> bool:
        """Carry out orders until `end`.

        Return False if a run has failed or left threads or queries, because then no other run may
        follow.
        """
        self._report(DriverEvent(kind="ready"))
        self._warm_up()
        while True:
            order = self._orders.next()
            match order:
                case CheckOrder():
                    self._check(order)
                case MaintainOrder():
                    self._maintain(order)
                case RunOrder(spec=spec):
                    if not self._run(spec):
                        return False
                case EndOrder():
                    return True
                case _:
                    assert_never(order)

    def _warm_up(self) -> None:
        """Warm Spark up while there is nothing else to do.

        An order does not wait for these steps: they end between two of them.
        """
        if self._engine is None or is_cluster(self._engine.place.master):
            return
        if self._orders.has_order(FIRST_ORDER_S):
            return
        topic = f"{self._home.topic_prefix}.pipelines"
        for step in warm_up(self._engine.session, self._kafka, topic, self._home.scratch):
            if self._orders.has_order():
                return
            step()
        logger.info("spark is warm")

    def _check(self, check: CheckOrder) -> None:
        self._report(DriverEvent(kind="checking", check_id=check.check_id))
        manifest, before = check.manifest.model, self._columns_before(check)
        compiled, problems = self._find_compiled(check.manifest)
        refused, alterations = ask_sinks(manifest, compiled, self._home.places, check.pipeline_uid)
        problems = (*problems, *refused)
        if not problems:
            self._checked = (check.manifest.native, compiled)
        columns = {stage.stage.name: stage.columns for stage in compiled}
        placed = tuple(sorted(check.manifest.place(problems), key=_place))
        self._report(
            DriverEvent(
                kind="checked",
                check_id=check.check_id,
                problems=placed,
                columns=columns,
                columns_before=before,
                alterations=alterations,
            )
        )

    def _maintain(self, order: MaintainOrder) -> None:
        self._report(DriverEvent(kind="checking", check_id=order.check_id))
        run = PipelineRun(order.spec, self._kafka, self._report)
        problems, done = maintain(order, run.report_again)
        self._report(
            DriverEvent(kind="checked", check_id=order.check_id, problems=problems, tasks=done)
        )

    def _columns_before(self, check: CheckOrder) -> dict[str, dict[str, str]]:
        """Return the columns of the manifest before, by stage.

        It is empty if that one does not compile any more.
        """
        if check.before is None or self._engine is None:
            return {}
        try:
            manifest = check.before.model
        except UserError:
            return {}
        compiled, _ = compile_stages(self._engine.session, manifest, self._lists)
        return {stage.stage.name: stage.columns for stage in compiled}

    def _find_compiled(
        self, manifest: AppliedManifest
    ) -> tuple[Sequence[CompiledStage], tuple[Problem, ...]]:
        """Return the stages that are good, and the problems of the others."""
        kept = self._reuse_checked(manifest)
        if kept is not None:
            return kept, ()
        assert self._engine is not None, "a driver without Spark got the order to check"
        return compile_stages(self._engine.session, manifest.model, self._lists)

    def _run(self, spec: RunSpec) -> bool:
        """Run a pipeline. Return True if it ended in good order and left nothing running."""
        threads = set(threading.enumerate())
        with _log_to(spec.log_file):
            logger.info("run begins", extra={"pipeline": spec.pipeline, "run_id": spec.run_id})
            try:
                self._carry_out(spec)
            except Exception as error:  # the run's boundary: whatever it was, the runner gets it
                logger.exception("run ends", extra=for_the_log(cause_of(error)))
                self._report_failure(spec, error)
                return False
            left = self._find_leftovers(threads)
            if left:
                logger.error("run has left threads or streams", extra={"left": left})
                return False
            logger.info("run has ended", extra={"pipeline": spec.pipeline, "run_id": spec.run_id})
        self._report(DriverEvent(kind="ended", run_id=spec.run_id))
        return True

    def _carry_out(self, spec: RunSpec) -> None:
        run = PipelineRun(spec, self._kafka, self._report)
        if spec.closing:
            run.close_sinks()
            return
        assert self._engine is not None, "a driver without Spark got the order to run a pipeline"
        self._report(DriverEvent(kind="compiling", run_id=spec.run_id))
        compiled = self._compile(spec.manifest)
        logger.info("pipeline is compiled", extra={"stages": len(compiled)})
        control, again = self._orders.control_of(spec.run_id), partial(self._compile, spec.manifest)
        run.run(self._engine, compiled, control, again)

    def _compile(self, manifest: AppliedManifest) -> Sequence[CompiledStage]:
        kept = self._reuse_checked(manifest)
        if kept is not None:
            return kept
        assert self._engine is not None, "a driver without Spark got the order to compile"
        return compile_pipeline(self._engine.session, manifest.model, self._lists)

    def _reuse_checked(self, manifest: AppliedManifest) -> Sequence[CompiledStage] | None:
        """Return the compiled stages if the manifest was just checked.

        A compiled stage serves one run.
        """
        (native, compiled), self._checked = self._checked, ("", ())
        return compiled if native == manifest.native else None

    def _find_leftovers(self, threads: set[threading.Thread]) -> list[str]:
        left = [f"thread {t.name}" for t in set(threading.enumerate()) - threads if _ours(t)]
        queries = 0 if self._engine is None else _active_queries(self._engine.session)
        return [*left, f"{queries} queries"] if queries else left

    def _report_failure(self, spec: RunSpec, error: Exception) -> None:
        stage = error.stage if isinstance(error, StageFailed) else None
        problems, said = explain(spec.manifest, cause_of(error), stage)
        self._report(DriverEvent(kind="failed", run_id=spec.run_id, problems=problems, error=said))


@contextmanager
def _log_to(file: Path) -> Iterator[None]:
    """Write all output into the log of the pipeline that it concerns."""
    before = [os.dup(output) for output in OUTPUTS]
    try:
        with file.open("ab") as log:
            for output in OUTPUTS:
                os.dup2(log.fileno(), output)
        yield
    finally:
        for output, own in zip(OUTPUTS, before, strict=True):
            os.dup2(own, output)
            os.close(own)


def _place(problem: Problem) -> tuple[int, int]:
    return problem.line or 0, problem.column or 0


def _active_queries(session: SparkSession) -> int:
    """Count the queries in all sessions of this JVM."""
    return int(session._jsparkSession.sharedState().activeStreamingQueries().size())


def _ours(thread: threading.Thread) -> bool:
    """Return True if the thread is one of ours. Libraries have their own, and use them again."""
    owner = getattr(getattr(thread, "_target", None), "__self__", None)
    return type(owner).__module__.startswith("waybill_")
