"""Reports what sinks contain, without Spark, for drivers that run no stage."""

from confluent_kafka import Producer

from waybill_shared.contract.driver import RunSpec
from waybill_shared.contract.events import Commit
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import produce_and_wait
from waybill_shared.process.clock import Clock
from waybill_spark.driver.definitions import later_sinks, stage_inputs
from waybill_spark.driver.sinks import open_sinks
from waybill_spark.driver.sql.planned import PlannedStage, join
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.tracking.commits import Identity, message_of
from waybill_spark.tracking.ledger import Ledger


def commits_topic(spec: RunSpec) -> str:
    return f"{spec.topic_prefix}.commits"


class Reporter:
    """Its ledgers return from a report when Kafka has it, or raise Retryable."""

    def __init__(
        self, spec: RunSpec, admin: KafkaAdmin, producer: Producer, identity: Identity, clock: Clock
    ) -> None:
        self._spec = spec
        self._producer = producer
        self._identity = identity
        self._clock = clock
        self.fences = Fences(admin, spec.topic_prefix)

    def ledgers(self, planned: PlannedStage) -> list[Ledger]:
        later = later_sinks(planned.definition)
        return [
            Ledger(
                sink,
                stage=planned.stage.name,
                inputs=stage_inputs(planned.definition),
                later=later.get(sink.name),
                identity=self._identity,
                emit=self._emit,
                clock=self._clock,
            )
            for sink in open_sinks(self._spec, self.fences, planned, schemas={})
        ]

    def report_again(self, sink: str) -> None:
        """Report what a table contains, because versions of it may have been deleted.

        No other driver loses its claim.
        """
        for planned in join(self._spec.manifest.model, self._spec.stages):
            for ledger in self.ledgers(planned.only(sink)):
                ledger.claim()
                ledger.read()
                ledger.report()
                ledger.sink.close()

    def _emit(self, commit: Commit) -> None:
        key, value = message_of(commit, self._identity, self._clock.now_ms())
        produce_and_wait(self._producer, commits_topic(self._spec), key, value)
