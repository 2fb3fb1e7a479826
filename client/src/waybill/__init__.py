"""The Waybill SDK: put records in, hold their token, learn when they have really arrived.

Owns the public names. Imports neither Spark nor Kafka, and no HTTP library before a Client is asked
for: a Spark driver that only uses `waybill.spark` pays for nothing else.
"""

from typing import TYPE_CHECKING

from waybill.errors import (
    Conflict,
    Expired,
    Invalid,
    NoAnswer,
    NotFound,
    NotReady,
    PhaseNotReached,
    PipelineFailed,
    ProblemError,
    StillInProgress,
    StillUnknown,
    TooLarge,
    UnexpectedAnswer,
    Unreachable,
    WaitEnded,
    WaybillError,
)
from waybill.models import Fault, IssuedToken, Operation, Position, Receipt, Rejected, Span
from waybill.outcomes import LostSpan, Outcome, OutcomeKind, SinkProgress, StageProgress
from waybill.pipelines import Pipeline, PipelineFailure, PipelineInput, PipelineSink, PipelineStage

if TYPE_CHECKING:
    from waybill.client import Client

__all__ = [
    "Client",
    "Conflict",
    "Expired",
    "Fault",
    "Invalid",
    "IssuedToken",
    "LostSpan",
    "NoAnswer",
    "NotFound",
    "NotReady",
    "Operation",
    "Outcome",
    "OutcomeKind",
    "PhaseNotReached",
    "Pipeline",
    "PipelineFailed",
    "PipelineFailure",
    "PipelineInput",
    "PipelineSink",
    "PipelineStage",
    "Position",
    "ProblemError",
    "Receipt",
    "Rejected",
    "SinkProgress",
    "Span",
    "StageProgress",
    "StillInProgress",
    "StillUnknown",
    "TooLarge",
    "UnexpectedAnswer",
    "Unreachable",
    "WaitEnded",
    "WaybillError",
]


def __getattr__(name: str) -> object:
    if name == "Client":
        from waybill.client import Client

        return Client
    raise AttributeError(f"module 'waybill' has no attribute {name!r}")
