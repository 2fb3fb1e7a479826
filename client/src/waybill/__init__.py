"""The Waybill SDK: send records, keep their token, learn when they have really arrived.

This module owns the public names. It imports neither Spark nor Kafka, and no HTTP library before a
client is asked for. So a Spark driver that only uses `waybill_spark` pays for nothing else.
"""

from typing import TYPE_CHECKING

from waybill.aio.tokens import AsyncIssuedToken, AsyncReceipt, AsyncReplayed, AsyncToken
from waybill.batches import OffsetRange, SinkBatch, StageBatch
from waybill.conditions import PipelineCondition, PipelineStuck
from waybill.dead_letters import DeadLetter, Dropped, Edit, RecordLocation
from waybill.errors import (
    Conflict,
    Expired,
    Invalid,
    KafkaAway,
    NoAnswer,
    NotAllowed,
    NotDelivered,
    NotFound,
    NotReady,
    PhaseNotReached,
    PhaseOutOfReach,
    PipelineFailed,
    ProblemError,
    Renamed,
    StillInProgress,
    StillUndelivered,
    StillUnknown,
    TooLarge,
    UnexpectedAnswer,
    Unreachable,
    Unusable,
    WaitEnded,
    WaybillError,
)
from waybill.findings import Change, CheckedStage, Findings
from waybill.flows import InputFlow, PipelineFlow, SinkFlow
from waybill.histories import PipelineEvent, PipelineRun
from waybill.manifest_versions import ManifestVersion
from waybill.models import FailedRecord, Fault, Operation, Position, Rejected, Span
from waybill.offsets import (
    InputOffsets,
    PartitionOffsets,
    PipelineOffsets,
    SinkFrontier,
    StageOffsets,
    UnknownOffsets,
)
from waybill.outcomes import (
    LostSpan,
    Outcome,
    OutcomeKind,
    PipelineOutcome,
    SinkProgress,
    StageProgress,
)
from waybill.payloads import Payload
from waybill.pipelines import (
    InputColumn,
    Pipeline,
    PipelineConnector,
    PipelineFailure,
    PipelineInput,
    PipelineSink,
    PipelineStage,
)
from waybill.proposals import Proposal
from waybill.sync.tokens import IssuedToken, Receipt, Replayed, Token
from waybill.topics import GrownTopic
from waybill.watches import Event, Watch, WatchWebhook

if TYPE_CHECKING:
    from waybill.aio.client import AsyncClient
    from waybill.sync.client import Client

__all__ = [
    "AsyncClient",
    "AsyncIssuedToken",
    "AsyncReceipt",
    "AsyncReplayed",
    "AsyncToken",
    "Change",
    "CheckedStage",
    "Client",
    "Conflict",
    "DeadLetter",
    "Dropped",
    "Edit",
    "Event",
    "Expired",
    "FailedRecord",
    "Fault",
    "Findings",
    "GrownTopic",
    "InputColumn",
    "InputFlow",
    "InputOffsets",
    "Invalid",
    "IssuedToken",
    "KafkaAway",
    "LostSpan",
    "ManifestVersion",
    "NoAnswer",
    "NotAllowed",
    "NotDelivered",
    "NotFound",
    "NotReady",
    "OffsetRange",
    "Operation",
    "Outcome",
    "OutcomeKind",
    "PartitionOffsets",
    "Payload",
    "PhaseNotReached",
    "PhaseOutOfReach",
    "Pipeline",
    "PipelineCondition",
    "PipelineConnector",
    "PipelineEvent",
    "PipelineFailed",
    "PipelineFailure",
    "PipelineFlow",
    "PipelineInput",
    "PipelineOffsets",
    "PipelineOutcome",
    "PipelineRun",
    "PipelineSink",
    "PipelineStage",
    "PipelineStuck",
    "Position",
    "ProblemError",
    "Proposal",
    "Receipt",
    "RecordLocation",
    "Rejected",
    "Renamed",
    "Replayed",
    "SinkBatch",
    "SinkFlow",
    "SinkFrontier",
    "SinkProgress",
    "Span",
    "StageBatch",
    "StageOffsets",
    "StageProgress",
    "StillInProgress",
    "StillUndelivered",
    "StillUnknown",
    "Token",
    "TooLarge",
    "UnexpectedAnswer",
    "UnknownOffsets",
    "Unreachable",
    "Unusable",
    "WaitEnded",
    "Watch",
    "WatchWebhook",
    "WaybillError",
]


def __getattr__(name: str) -> object:
    match name:
        case "Client":
            from waybill.sync.client import Client

            return Client
        case "AsyncClient":
            from waybill.aio.client import AsyncClient

            return AsyncClient
    raise AttributeError(f"module 'waybill' has no attribute {name!r}")
