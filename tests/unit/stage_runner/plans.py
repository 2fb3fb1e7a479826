"""The example pipeline as it is planned: its manifest, its topics and its stages."""

from unit.stage_runner.fakes import EXAMPLE
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_stage_runner.core.pipelines.planning import TopicState, define

MANIFEST = read_manifest(EXAMPLE).model


def empty(topic_id: str, *begin: int) -> TopicState:
    """A topic without records; `begin` is by partition."""
    begins = dict(enumerate(begin))
    return TopicState(topic_id=topic_id, starts=begins, ends=begins)


TOPICS = {"orders.in": empty("R", 0, 7), "orders.enriched": empty("A", 0)}
DEFINED: tuple[StageDefinition, ...] = define(MANIFEST, TOPICS, None)
ENRICH, LOAD = DEFINED
