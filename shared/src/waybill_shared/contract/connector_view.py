"""Progress of a connector as people see it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import ConnectorState


def beginning(record: PipelineRecord, topic: str, connector: FileConnector) -> ConnectorProgress:
    """Return the progress of a connector that has not reported any yet."""
    return ConnectorProgress(
        tenant=record.tenant,
        pipeline_uid=record.pipeline_uid,
        topic=topic,
        connector=connector.name,
        url=connector.url,
        at=0,
        state=ConnectorState.WAITING,
    )


def no_connector(name: str, pipeline: str, source: str, known: Sequence[str]) -> Refusal:
    detail = f"input {source} of pipeline {pipeline} has no connector {name!r:.80}"
    hint = hint_of_names(name, known, "its connectors") if known else "it has none at all"
    return Refusal(Slug.CONNECTOR_NOT_FOUND, detail, hint=hint, known=list(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorDetail:
    name: str
    url: str = field(metadata={"description": "without its query"})
    state: str = field(metadata={"description": meanings(ConnectorState)})
    rows: int = field(metadata={"description": "of the file that were read"})
    records: int = field(metadata={"description": "of these, written to the topic of the input"})
    dead: int = field(metadata={"description": "of these, written to its dead-letter topic"})
    bytes: int = field(metadata={"description": "of the file that were read, as it is sent"})
    size: int | None = field(metadata={"description": "of the file, if its server says it"})
    changed_at: Moment | None = field(metadata={"description": "null: nothing was reported yet"})
    error: str | None = field(metadata={"description": "why the last attempt failed"})
    note: str | None = field(metadata={"description": "what else a person should know"})


def connector_detail(progress: ConnectorProgress, *, running: bool) -> ConnectorDetail:
    """Return the progress as people see it.

    `running` is True if its pipeline is to run; otherwise nothing is fetched.
    """
    waits = not running and progress.state != ConnectorState.DONE
    return ConnectorDetail(
        name=progress.connector,
        url=progress.url.partition("?")[0],
        state=ConnectorState.WAITING if waits else progress.state,
        rows=progress.rows,
        records=progress.records,
        dead=progress.dead,
        bytes=progress.bytes,
        size=progress.size,
        changed_at=progress.at or None,
        error=progress.error,
        note=progress.note,
    )
