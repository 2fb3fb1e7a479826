"""Events of `waybill.status`, which programs of others read:

CloudEvents 1.0, structured JSON.

The same event has the same id, however often it is written. No event contains a token: who has one
may ask for its outcome.
"""

import hashlib
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

from pydantic import JsonValue

from waybill_shared.contract.dead_letters import Headers
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.token_views import ShownView, view_to_show
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.contract.webhooks import without_query
from waybill_shared.contract.words import EventType, WatchEnd

MEDIA_TYPE: Final = "application/cloudevents+json"
HEADERS: Final[Headers] = (("content-type", MEDIA_TYPE.encode()),)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusEvent:
    """Attributes of CloudEvents; `tenant`, `pipeline` and `stage` are ours. `subject`: what it is
    about, such as a watch."""

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    type: EventType
    subject: str
    time: str
    datacontenttype: Literal["application/json"] = "application/json"
    tenant: str
    pipeline: str | None = None
    stage: str | None = None
    data: dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFinalData:
    """`outcome`: as `GET /v1/tokens/{t}` answers to who asks with the same `view`; null if it
    expired. `token_hash`: SHA-256."""

    watch: str
    token_hash: str
    view: ShownView
    ended_as: WatchEnd
    outcome: dict[str, JsonValue] | None
    labels: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFailedData:
    """`url`: without its query. `event_id`: of what it did not take."""

    watch: str
    url: str
    event_id: str
    attempts: int
    error: str
    labels: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRange:
    """Records from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCommittedData:
    """`sink`: the name of it in the stage. `version`: what the sink calls what it has now.
    `started_at`: when the batch began. `ranges`: what it took, of the first hundred partitions."""

    pipeline_uid: str
    generation: int
    sink: str
    batch: int
    rows: int
    started_at: str
    version: dict[str, str]
    ranges: list[BatchRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePhaseData:
    """`error`: why it failed, if it did; with a hint."""

    pipeline_uid: str
    generation: int
    phase_from: str | None
    phase: str
    reason: str
    actor: str
    error: dict[str, JsonValue] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFailedData:
    """`message`: why it is stopped. `hint`: what to do before it is started."""

    pipeline_uid: str
    generation: int
    message: str | None
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMaintainedData:
    """`task`: by its key in the manifest. `done`: in numbers, such as files and snapshots."""

    pipeline_uid: str
    generation: int
    sink: str
    task: str
    done: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNotMaintainedData:
    """`task`: by its key in the manifest. `problem`: why nothing was done, with a hint."""

    pipeline_uid: str
    generation: int
    sink: str
    task: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterData:
    """`letters`: ids of the first hundred."""

    pipeline_uid: str
    generation: int
    count: int
    reasons: list[str]
    letters: list[str]


DATA_OF: Final[dict[EventType, type]] = {
    EventType.TOKEN_FINAL: TokenFinalData,
    EventType.WEBHOOK_FAILED: WebhookFailedData,
    EventType.STAGE_COMMITTED: StageCommittedData,
    EventType.PIPELINE_PHASE: PipelinePhaseData,
    EventType.STAGE_FAILED: StageFailedData,
    EventType.DEAD_LETTER: DeadLetterData,
    EventType.TABLE_MAINTAINED: TableMaintainedData,
    EventType.TABLE_NOT_MAINTAINED: TableNotMaintainedData,
}


def data_of(
    data: TokenFinalData
    | WebhookFailedData
    | StageCommittedData
    | PipelinePhaseData
    | StageFailedData
    | DeadLetterData
    | TableMaintainedData
    | TableNotMaintainedData,
) -> dict[str, JsonValue]:
    """Return the data as an event has it. All fields but views are JSON already."""
    return {each.name: _plain(getattr(data, each.name)) for each in fields(data)}


def _plain(value: Any) -> JsonValue:  # noqa: ANN401 - of any field
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return asdict(value) if isinstance(value, ShownView | BatchRange) else value


def source_of(prefix: str) -> str:
    """Return the source of all events of one Waybill."""
    return f"/waybill/{prefix}"


def token_hash(token: str) -> str:
    """Return the hash by which the owner of the token finds its event."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def shorten(outcome: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the outcome without its lists and objects, marked as shortened.

    A request for the token returns all of it.
    """
    plain = {n: v for n, v in outcome.items() if not isinstance(v, list | dict)}
    return {**plain, "shortened": True}


def final_event(
    watch: TokenWatch,
    ended_as: WatchEnd,
    outcome: dict[str, JsonValue] | None,
    *,
    source: str,
    now_ms: int,
) -> StatusEvent:
    """Build the event of a watch that has ended.

    There is only one, so its id is made from that of the watch. `outcome`: as an answer has it;
    None if there is none.
    """
    pipeline = None if outcome is None else outcome.get("pipeline")
    return StatusEvent(
        id=f"{watch.id}.final",
        source=source,
        type=EventType.TOKEN_FINAL,
        subject=watch.id,
        time=format_moment(now_ms),
        tenant=watch.tenant,
        pipeline=pipeline if isinstance(pipeline, str) else None,
        data=data_of(
            TokenFinalData(
                watch=watch.id,
                token_hash=token_hash(watch.token),
                view=view_to_show(watch.view),
                ended_as=ended_as,
                outcome=outcome,
                labels=watch.labels,
            )
        ),
    )


def webhook_failed_event(
    watch: TokenWatch, delivery: WebhookDelivery, *, source: str, now_ms: int
) -> StatusEvent:
    """Build the event of a delivery that was given up."""
    return StatusEvent(
        id=f"{watch.id}.failed.{delivery.redelivery}",
        source=source,
        type=EventType.WEBHOOK_FAILED,
        subject=watch.id,
        time=format_moment(now_ms),
        tenant=watch.tenant,
        data=data_of(
            WebhookFailedData(
                watch=watch.id,
                url=without_query(delivery.webhook.url),
                event_id=delivery.event_id,
                attempts=delivery.attempts,
                error=delivery.error or "",
                labels=watch.labels,
            )
        ),
    )
