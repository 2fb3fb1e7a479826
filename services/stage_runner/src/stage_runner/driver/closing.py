"""The last word on sinks that go, with a change or with their pipeline: what stands in them.

Without Spark. A driver that was killed may have written a batch and not told so; its tokens must
not end lost.
"""

import logging

from confluent_kafka import Producer

from shared.clock import Clock
from shared.errors import Retryable
from shared.events import Commit, StageDefinition
from shared.kafka import produce_and_wait
from shared.kafka_admin import KafkaAdmin
from shared.manifest import Stage, parse_manifest
from stage_runner.driver.app import stage_inputs
from stage_runner.driver.sinks import open_sinks
from stage_runner.driver_protocol import DriverSpec
from waybill.spark.commits import Identity, message_of
from waybill.spark.ledger import Ledger
from waybill.spark.stopping import StageStopped

logger = logging.getLogger(__name__)


def commits_topic(spec: DriverSpec) -> str:
    return f"{spec.topic_prefix}.commits"


def report_last(
    spec: DriverSpec, admin: KafkaAdmin, producer: Producer, identity: Identity, clock: Clock
) -> None:
    """Claim each sink that is defined, so that no earlier driver writes there any more, and report
    what it holds. The manifest may name others, which stay.

    Returns when Kafka has every report; raises Retryable.
    """

    def emit(commit: Commit) -> None:
        key, value = message_of(commit, identity, clock.now_ms())
        produce_and_wait(producer, commits_topic(spec), key, value)

    stages = {stage.name: stage for stage in parse_manifest(spec.manifest).stages}
    for definition in spec.stages:
        stage = _only(stages[definition.name], definition)
        for sink in open_sinks(spec, admin, stage, definition, schemas={}):
            ledger = Ledger(
                sink,
                stage=stage.name,
                inputs=stage_inputs(definition),
                identity=identity,
                emit=emit,
                clock=clock,
            )
            sink.claim()
            ledger.read()
            _report(ledger)
            sink.close()


def _only(stage: Stage, definition: StageDefinition) -> Stage:
    named = {sink.name for sink in definition.sinks}
    sinks = tuple(sink for sink in stage.sinks if sink.name in named)
    return stage.model_copy(update={"sinks": sinks})


def _report(ledger: Ledger) -> None:
    try:
        ledger.shut()
    except StageStopped as gone:
        logger.warning("sink is gone", extra={"sink": ledger.sink.name, "reason": str(gone)})
    if ledger.hidden:
        raise Retryable(f"sink {ledger.sink.name}: an open transaction hides what was written")
