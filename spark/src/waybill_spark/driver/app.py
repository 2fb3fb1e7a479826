"""A stage of a run: its query in the Spark session of the driver, and its sinks."""

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from waybill_shared.contract.driver_news import SinkWait
from waybill_shared.contract.errors import ContractError, Problem
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.manifest.triggers import ends
from waybill_shared.contract.slots import stage_key
from waybill_shared.contract.vectors import TopicPartition, Vector
from waybill_spark.driver.definitions import (
    checkpoint_path,
    later_sinks,
    replacing_of,
    requests_of,
    rewinds_of,
    stage_inputs,
)
from waybill_spark.driver.failures import StageFailed
from waybill_spark.driver.reading.blocking import Reading, readings
from waybill_spark.driver.reading.ignored import Ignored
from waybill_spark.driver.reading.pace import set_pause, set_trigger
from waybill_spark.driver.reading.source import read_topics
from waybill_spark.driver.replays import ReplayThread
from waybill_spark.driver.sql.compile import CompiledStage
from waybill_spark.driver.surroundings import (
    DeadLetterRules,
    Surroundings,
    make_replays,
    make_source,
)
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.checkpoint import Checkpoint, stop_after_commit
from waybill_spark.tracking.local_files import LocalFiles
from waybill_spark.tracking.replaying import Replays
from waybill_spark.tracking.sink import Sink
from waybill_spark.tracking.stage import TrackedStage
from waybill_spark.tracking.stopping import StageClosed

logger = logging.getLogger(__name__)

SLOW_LOAD_MS: Final = 2_000  # a batch that a sink needs longer for is reported


class RunningStage:
    """One stage: its tracked batches and the query that feeds them."""

    failure: Exception | None = None
    job_group: str | None = None  # of Spark's jobs for its batches
    _failed_replay: Exception | None = None
    _is_open = False
    _is_closed = False

    def __init__(
        self,
        compiled: CompiledStage,
        definition: StageDefinition,
        sinks: tuple[Sink, ...],
        dead_letters: DeadLetterRules,
        around: Surroundings,
    ) -> None:
        self.name = definition.name
        self.key = stage_key(definition)
        """Its key in the slot."""
        self.topics = tuple(each.topic for each in definition.inputs)
        """Those that it reads."""
        self.reads = frozenset(each.topic_id for each in definition.inputs)
        """Their ids."""
        self.outputs = frozenset(each.topic_id for each in definition.sinks) - {None}
        """The ids of topics that it writes."""
        self._compiled = compiled
        self._around = around
        self._sinks = sinks
        self._journal = dead_letters.journal
        self._budget = dead_letters.budget
        self._inputs = stage_inputs(definition)
        self._folder = around.checkpoint_folder / checkpoint_path(definition, self._inputs)
        self._query: StreamingQuery | None = None
        self._started = threading.Event()
        self._planned = False
        self._going_on: Future[DataFrame | None] | None = None
        self._checkpoint = Checkpoint(LocalFiles(self._folder))
        self._batch_id = -1
        self._done = -1
        """The last batch of this run that was processed."""
        self._batches = 0
        self._tracked = TrackedStage(
            self.name,
            identity=around.identity,
            inputs=self._inputs,
            sinks=sinks,
            later=later_sinks(definition),
            rewinds=rewinds_of(definition, around.rewinds),
            dead_letters=requests_of(definition, around.dead_letters, around.replays_topic),
            replacing=replacing_of(compiled.stage),
            checkpoint=self._checkpoint,
            source=make_source(compiled, around),
            offsets_max=compiled.stage.max_offsets_per_trigger,
            to_rows=self._rows,
            journal=dead_letters.journal,
            budget=dead_letters.budget,
            loads=around.loads,
            emit=around.emitter.emit,
            report_maintenance=around.report_maintenance,
            clock=around.clock,
        )
        self._replayed = make_replays(compiled, around)
        self._replays = ReplayThread(self, self._replayed.messages)
        self.progress = self._tracked.progress

    def open(self) -> None:
        """Open the sinks and fences.

        Meanwhile Spark plans the query, because opening mostly waits for Kafka.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="plan") as pool:
            self._going_on = pool.submit(self._plan_going_on)
            self._tracked.open()

    def report_losses(self) -> None:
        self._tracked.report_losses()
        self._is_open = True
        logger.info("fences are reported", extra={"stage": self.name})

    def put_dead_letters(self) -> Mapping[str, Problem | None]:
        """Write the dead letters that a person asks for. Return why not, by the id of a command."""
        return self._tracked.put_dead_letters(self._replayed)

    def start(self) -> None:
        starts = self._tracked.resume()
        assert self._going_on is not None, "it is opened first"
        self._started.clear()
        rows = self._going_on.result()
        if rows is None or starts:
            rows = self._plan(starts)
        writer = (
            rows.writeStream.queryName(self.name)
            .foreachBatch(self._process)
            .option("checkpointLocation", str(self._folder))
        )
        self._query = set_trigger(writer, self._compiled.stage.effective_trigger).start()
        self.job_group = str(self._query.runId)
        self._started.set()

    @property
    def is_paused(self) -> bool:
        """True if no batch of it runs, and none begins."""
        return self._tracked.gate.is_paused

    def set_paused(self, *, paused: bool) -> None:
        self._tracked.gate.set_paused(paused=paused)

    def move_claims(self) -> None:
        """Let no driver of an earlier run commit a batch any more."""
        try:
            self._tracked.move_claims()
        except ContractError as error:
            raise StageFailed(self.name) from error

    def keep_out_earlier(self) -> None:
        """Move its claims, now that it is stopped, as far as its sinks accept that.

        A stage that could not be opened moves none: it does not know its fences.
        """
        if not self._is_open:
            return
        try:
            self._tracked.move_claims()
        except ContractError as error:
            reason = {"stage": self.name, "reason": str(error)}
            logger.warning("a driver of an earlier run may still write", extra=reason)

    @property
    def put_aside(self) -> int:
        """The number of records that it has put aside in this run."""
        return self._budget.spent

    def watch(self) -> None:
        self._tracked.watch()

    def start_replays(self) -> None:
        """Replay dead letters from now on, until the stage is closed or a replay fails."""
        self._replays.start()

    def has_replayed(self) -> bool:
        """Return True if once no letter was left to replay."""
        return self._replays.has_caught_up()

    def replays_done(self) -> list[Vector]:
        """Return up to where each sink has the replays that name it."""
        return self._tracked.replays_done()

    def replay(self, replays: Replays) -> None:
        """Bring dead letters to the sinks that lack them, as `TrackedStage.replay` does."""
        try:
            self._tracked.replay(replays, self._replayed.letters)
        except Exception as error:
            if not isinstance(error, StageClosed):
                self._failed_replay = error
            raise

    def unknown_fields(self) -> Ignored:
        return self._compiled.ignored

    def has_hidden_rows(self) -> bool:
        return self._tracked.has_hidden_rows()

    def waits(self) -> tuple[SinkWait, ...]:
        return self._tracked.waits(SLOW_LOAD_MS)

    def readings(self) -> tuple[Reading, ...]:
        """Return where it reads; nowhere if it has ended."""
        positions = self._tracked.positions()
        return () if self.has_ended() else readings(self.name, self._inputs, positions)

    def lacks(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Return True if a sink does not have everything below `ends`, or is to get it again."""
        positions = self._tracked.positions()
        return any(each.get(at, 0) < end for each in positions for at, end in ends.items())

    def has_passed(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Return True if each sink has everything below `ends`, and readers can see it."""
        return not self.lacks(ends) and not self.has_hidden_rows()

    def waits_for_start(self) -> bool:
        """Return True if it has not started, or has read all that there was."""
        return self._query is None or self.has_ended()

    def has_ended(self) -> bool:
        """Return True if its query has ended because it has read all that there was."""
        query = self._query
        if query is None or query.isActive or not ends(self._compiled.stage.effective_trigger):
            return False
        return self.failure is None and query.exception() is None

    def batches(self) -> int:
        """Return how many batches it has started."""
        return self._batches

    def ask_every(self, pause_ms: int) -> None:
        if self._query is not None:
            set_pause(self._query._jsq.streamingQuery(), pause_ms)

    def find_failure(self) -> Exception | None:
        """Return why the query has failed; None if it runs, or has read all that there was.

        Kafka may know the cause better than Spark does.
        """
        query = self._query
        if self._failed_replay is not None:
            return self._failed_replay
        if query is None or query.isActive or self.has_ended():
            return None
        if self.failure is None:
            self._tracked.watch()
        return self.failure or query.exception() or StreamingQueryException("the query ended")

    def stop(self) -> None:
        """Stop at a batch boundary: wait for the running batch, let no other start, then stop."""
        if self._is_closed:
            return
        self._is_closed = True
        self.end_query()
        for sink in self._sinks:
            sink.close()
        self._journal.close()

    def end_query(self) -> None:
        """End the query after its batch. The stage writes nothing any more.

        Spark notes the end of a batch only after our part of it, so this is waited for, too.
        """
        self._replays.stop()
        self._tracked.close()
        query = self._query
        if query is not None and not stop_after_commit(query, self._checkpoint, self._done):
            logger.warning("batch is not in the checkpoint", extra={"stage": self.name})

    def _plan_going_on(self) -> DataFrame | None:
        """Plan the query from the position of the checkpoint, if there is one.

        Whether it can be used is decided by `resume`.
        """
        return self._plan({}) if self._folder.exists() else None

    def _plan(self, starts: Mapping[TopicPartition, int]) -> DataFrame:
        stream = read_topics(
            self._around.spark.newSession(),  # views of several stages may have one name
            self._around.kafka,
            topics={i.topic: i.topic_id for i in self._inputs},
            partitions=self._around.admin.identify(i.topic for i in self._inputs),
            starts=starts,
            offsets_max=self._compiled.stage.batch_offsets_max,
            whole=self._compiled.whole,
        )
        planned = self._compiled.plan(stream)
        self._planned = planned is not None
        return stream if planned is None else planned

    def _rows(self, frame: DataFrame) -> BatchRows:
        if not self._planned:
            return self._compiled.rows(frame)
        self._started.wait()  # its first batch may come before the query is in our hands
        assert self._query is not None
        execution = self._query._jsq.streamingQuery().lastExecution()
        assert execution.currentBatchId() == self._batch_id, "observed by another batch"
        return self._compiled.collect(frame, execution)

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        self._batch_id = batch_id
        self._batches += 1
        try:
            self._tracked.process(frame, batch_id)
            self._done = batch_id
        except Exception as error:
            # The loop's boundary. Py4J would hand on only the text of it, and Spark searches that
            # text by a recursive expression, which overflows the stack of its thread.
            self.failure = error
            raise StageFailed(self.name) from None
