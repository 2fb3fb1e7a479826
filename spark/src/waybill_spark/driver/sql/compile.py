"""From a stage of a manifest to frames: views for its inputs, its SQL steps, rows for its sinks.

Every step is first analyzed on streaming frames, so that nothing silently means "per batch".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.formats import FORMATS
from waybill_shared.contract.manifest.model import Manifest, Stage
from waybill_spark.driver.reading.dead_reasons import find_dead_cause
from waybill_spark.driver.reading.decode import decode
from waybill_spark.driver.reading.decode_report import (
    Seen,
    count_verdicts,
    find_unjudged,
    look,
    remember,
)
from waybill_spark.driver.reading.executor_rows import ExecutorRows
from waybill_spark.driver.reading.ignored import Ignored
from waybill_spark.driver.reading.inputs import DecodedInput, describe_input
from waybill_spark.driver.reading.sizes import RecordSizes
from waybill_spark.driver.sql.analysis import analyze_steps, find_wrong_texts
from waybill_spark.driver.sql.planned_records import SparkRecords, plan_records
from waybill_spark.driver.sql.rules import wrong_rules
from waybill_spark.driver.sql.schema_streams import schema_stream
from waybill_spark.driver.sql.schemas import schema_for
from waybill_spark.driver.sql.value_errors import name_value_errors
from waybill_spark.guard.judge import Allowed
from waybill_spark.guard.plans import refuse_executed
from waybill_spark.sinks.opening import loader_of
from waybill_spark.sinks.rows import select_all, select_for
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import DeadLetterRecord, Place, RawRecord
from waybill_spark.tracking.distributed_rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledStage:
    """A stage with analyzed SQL; `schemas` is by sink name."""

    stage: Stage
    inputs: tuple[DecodedInput, ...]
    columns: dict[str, str]
    schemas: dict[str, pa.Schema]
    selected: dict[str, dict[str, str]]
    """By sink name: the names of columns in the rows of the view, by their names in the sink."""
    lists: Allowed
    sizes: RecordSizes = field(default_factory=RecordSizes, compare=False)
    ignored: Ignored = field(default_factory=Ignored, compare=False)
    _judged: set[str] = field(default_factory=set, compare=False)

    def plan(self, stream: DataFrame) -> DataFrame | None:
        """Return the rows of all sinks as one plan over the stream, which Spark analyzes once. None
        if sinks have different views, or if the view reads the stream more than once: each
        reading would have its own end in a batch.
        """
        if len(self._views()) > 1:
            return None
        wanted = self._select(stream, *self._views())
        self._judge("stream", wanted._jdf.queryExecution())
        return (
            wanted if wanted._jdf.queryExecution().analyzed().collectLeaves().size() == 1 else None
        )

    def collect(self, batch: DataFrame, execution: JavaObject) -> BatchRows:
        """Collect the rows of each sink in a batch of what `plan` returned; `execution` is the
        query's. Spark would plan its `batch` a second time; `execution` is already planned.
        """
        self._judge("batch", execution)
        spark = batch.sparkSession
        assert spark._jvm is not None
        dataset = spark._jvm.org.apache.spark.sql.classic.Dataset
        frame = ClassicFrame(dataset(execution, batch._jdf.encoder()), spark)
        table, seen = self._collect(frame, lambda: execution)
        left_out = find_unjudged(execution, self.inputs, seen)
        assert not left_out, f"Spark has not read {left_out}"  # it does so at rest only
        return self._batch(lambda _, columns: select_for(table, columns), seen)

    def rows(self, raw: DataFrame) -> BatchRows:
        """Compute the rows of each sink for these raw records, with one Spark action for each
        distinct view.
        """
        tables: dict[str, pa.Table] = {}

        def collect(view: str, wanted: DataFrame) -> dict[str, Seen]:
            tables[view], seen = self._collect(wanted, wanted._jdf.queryExecution)
            return seen

        seen = self._read(raw, collect)
        return self._batch(lambda view, columns: select_for(tables[view], columns), seen)

    def distribute(self, raw: DataFrame) -> BatchRows:
        """Compute the same as `rows`, but leave the rows with the executors."""
        kept: dict[str, ExecutorRows] = {}

        def keep(view: str, wanted: DataFrame) -> dict[str, Seen]:
            kept[view] = ExecutorRows(wanted)
            with name_value_errors(self.stage.steps):
                execution = kept[view].compute()
            return look(execution, self.inputs)

        try:
            seen = self._read(raw, keep)
        except BaseException:
            for each in kept.values():
                each.forget()
            raise
        return self._batch(lambda view, columns: kept[view].rows(columns), seen)

    def plan_records(
        self, raw: DataFrame, places: Sequence[Place] | None = None
    ) -> SparkRecords | None:
        """Plan the views once for a search among these raw records; None if that cannot be.
        `places`: where the search finds each of them, if not where the record says.
        """

        def to_sinks(tables: Mapping[str, pa.Table]) -> BatchRows:
            return BatchRows(self._by_sink(lambda view, columns: select_for(tables[view], columns)))

        return plan_records(
            raw,
            self._views(),
            self._select,
            to_sinks,
            steps=self.stage.steps,
            places=places,
        )

    def _read(
        self, raw: DataFrame, action: Callable[[str, DataFrame], dict[str, Seen]]
    ) -> dict[str, Seen]:
        """Run `action` for each view, and return what was seen of the inputs. `action` computes the
        rows of a view and returns what it has seen.
        """
        seen: dict[str, Seen] = {}
        executions: list[JavaObject] = []
        for view in self._views():
            wanted = self._select(raw, view)
            self._judge(view, wanted._jdf.queryExecution(), at_rest=True)
            seen |= action(view, wanted)  # each view has seen the same records of an input
            executions.append(wanted._jdf.queryExecution())
        for source in {s for each in executions for s in find_unjudged(each, self.inputs, seen)}:
            _, found = self._find_single(raw, source)
            seen |= found
        return seen

    def dead(self, record: RawRecord, verdict: int) -> DeadLetterRecord:
        (source,) = (each for each in self.inputs if each.topic == record.topic)
        return DeadLetterRecord(record=record, cause=find_dead_cause(record.value, verdict, source))

    @property
    def whole(self) -> bool:
        """True if an input reads more of a record than its value."""
        return any(FORMATS[source.keys.format].whole for source in self.inputs)

    def _judge(self, what: str, execution: JavaObject, *, at_rest: bool = False) -> None:
        """Check each kind of plan once, because the check of the manifest has seen other plans than
        those that run.
        """
        if what not in self._judged:
            refuse_executed(execution, self.lists, at_rest=at_rest)
            self._judged.add(what)

    def _views(self) -> list[str]:
        return list(dict.fromkeys(self.stage.source_of(sink) for sink in self.stage.sinks))

    def _select(self, raw: DataFrame, view: str) -> DataFrame:
        spark = raw.sparkSession
        _register(spark, raw, self.inputs, self.stage)
        sinks = [sink for sink in self.stage.sinks if self.stage.source_of(sink) == view]
        frame = spark.table(view)
        return select_all(frame, [loader_of(s.kind).columns(s, frame) for s in sinks])

    def _collect(
        self, frame: DataFrame, execution: Callable[[], JavaObject]
    ) -> tuple[pa.Table, dict[str, Seen]]:
        with name_value_errors(self.stage.steps):
            table = frame.toArrow()
        return table, look(execution(), self.inputs)

    def _find_single(
        self, raw: DataFrame, source: DecodedInput
    ) -> tuple[pa.Table, dict[str, Seen]]:
        """Read one input by itself. Where the query can give no row, Spark does not read the input,
        but its bad records must be found all the same.
        """
        number = decode(raw, source).agg(F.count(F.lit(1)))
        return self._collect(number, number._jdf.queryExecution)

    def _batch(
        self, rows_of: Callable[[str, Mapping[str, str]], Rows], seen: dict[str, Seen]
    ) -> BatchRows:
        """Build the batch. `rows_of` returns the columns of a view that a sink gets."""
        remember(self.inputs, seen, self.sizes, self.ignored)
        return BatchRows(
            self._by_sink(rows_of),
            dead=[each for name in sorted(seen) for each in seen[name].dead],
            dropped={
                f"{source}.{rule}": count
                for source, rule, count in count_verdicts(self.inputs, seen, "drop")
            },
        )

    def _by_sink(self, rows_of: Callable[[str, Mapping[str, str]], Rows]) -> dict[str, Rows]:
        return {
            sink.name: rows_of(self.stage.source_of(sink), self.selected[sink.name])
            for sink in self.stage.sinks
        }


def compile_pipeline(
    spark: SparkSession, manifest: Manifest, lists: Allowed
) -> tuple[CompiledStage, ...]:
    """Compile all stages in the order of their data. Raise UserError with the places in the
    manifest if one is wrong. `lists`: what their queries may contain.
    """
    compiled, problems = compile_stages(spark, manifest, lists)
    if problems:
        raise UserError(problems)
    return compiled


def compile_stages(
    spark: SparkSession, manifest: Manifest, lists: Allowed
) -> tuple[tuple[CompiledStage, ...], tuple[Problem, ...]]:
    """Compile the stages, and return the good ones and the problems of the others. Stages that read
    the output of a refused one are not analyzed.
    """
    readable = {source.name: describe_input(source) for source in manifest.inputs}
    topics = manifest.topics()
    compiled: list[CompiledStage] = []
    problems: list[Problem] = [*wrong_rules(spark, manifest, lists)]
    for stage in manifest.stages_in_order():
        at = manifest.stages.index(stage)
        if not readable.keys() >= set(stage.inputs):
            problems += find_wrong_texts(spark, stage, at, lists)
            continue
        inputs = tuple(readable[name] for name in stage.inputs)
        try:
            compiled.append(_compile_stage(spark, stage, at, inputs, lists))
            readable |= _fed(compiled[-1], topics)
        except UserError as error:
            problems += error.problems
    return tuple(compiled), tuple(problems)


def _fed(stage: CompiledStage, topics: Mapping[str, str]) -> dict[str, DecodedInput]:
    """Return the inputs that later stages may read from this one."""
    return {
        name: DecodedInput(name=name, topic=topics[name], columns=columns, own_output=True)
        for name, columns in stage.columns.items()
        if name in topics
    }


def _compile_stage(
    spark: SparkSession, stage: Stage, at: int, inputs: tuple[DecodedInput, ...], lists: Allowed
) -> CompiledStage:
    session = spark.newSession()
    for source in inputs:
        schema_stream(session, source).createOrReplaceTempView(source.name)
    problems, wrong = analyze_steps(session, stage, at, lists)
    columns, schemas, selected = {}, {}, {}
    for k, sink in enumerate(stage.sinks):
        if stage.source_of(sink) in wrong:
            continue
        frame, path = session.table(stage.source_of(sink)), f"stages.{at}.sinks.{k}"
        try:
            schemas[sink.name] = schema_for(sink, frame, path)
        except UserError as error:
            problems += error.problems
            continue
        columns[sink.name] = _ddl(frame)
        given = loader_of(sink.kind).columns(sink, frame)
        selected[sink.name] = {name: each.name for name, each in given.items()}
    if problems:
        raise UserError(problems)
    return CompiledStage(
        stage=stage, inputs=inputs, columns=columns, schemas=schemas, selected=selected, lists=lists
    )


def _register(
    spark: SparkSession, raw: DataFrame, inputs: tuple[DecodedInput, ...], stage: Stage
) -> None:
    """Register views for inputs and steps. The queries of the steps have passed the checks."""
    for source in inputs:
        decode(raw, source).createOrReplaceTempView(source.name)
    for step in stage.steps:
        spark.sql(step.sql).createOrReplaceTempView(step.name)


def _ddl(frame: DataFrame) -> str:
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema)
