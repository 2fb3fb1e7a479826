"""The newest progress of each connector. A thread feeds it from `waybill.connectors`."""

from dataclasses import replace

from waybill_shared.contract.connector_view import beginning
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.connectors import FileConnector


class KnownConnectors:
    """The newest progress of each connector. A thread feeds it from `waybill.connectors`."""

    def __init__(self) -> None:
        self._known: dict[str, ConnectorProgress] = {}

    def accept(self, progress: ConnectorProgress) -> None:
        self._known[progress.key] = progress

    def dead_of(self, pipeline_uid: str) -> int:
        """Return how many rows of its files went to dead-letter topics, those of connectors of
        earlier manifests too."""
        known = list(self._known.values())
        return sum(each.dead for each in known if each.pipeline_uid == pipeline_uid)

    def of(self, record: PipelineRecord, topic: str, connector: FileConnector) -> ConnectorProgress:
        started = beginning(record, topic, connector)
        return replace(self._known.get(started.key, started), connector=connector.name)
