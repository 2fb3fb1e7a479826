"""Works out how much was written to each pipeline, and how much has arrived, at one moment.
Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.moments import Moment
from waybill_status.core.outcomes.views import View
from waybill_status.core.pipelines.progress import (
    InputProgress,
    PipelineProgress,
    SinkBacklog,
    progress_of,
)

_REASON: Final = "why nothing can be said of it now; null: it can"
_DEAD: Final = (
    "about so many records that went to dead-letter topics, and rows of files: one that is found"
    " behind a stage counts once for each run of records that it may be of, of more than 10,000 old"
    " ones count together, and what was sent again or is in no topic any more counts, too"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFlow:
    """Numbers of offsets, of the inputs. A pipeline's `behind` is what it has written less what has
    arrived."""

    name: str
    uid: str
    reason: str | None = field(metadata={"description": _REASON})
    inputs: tuple[InputProgress, ...]
    sinks: tuple[SinkBacklog, ...]
    dead: int = field(metadata={"description": _DEAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    at: Moment
    items: tuple[PipelineFlow, ...]


def flow_of(
    record: PipelineRecord,
    view: View,
    ends: Mapping[str, Mapping[int, int]],
    *,
    dead_of_files: int = 0,
) -> PipelineFlow:
    found = progress_of(record, view, ends)
    if not isinstance(found, PipelineProgress):
        return unknown_flow(record, str(found))
    return PipelineFlow(
        name=record.name,
        uid=record.pipeline_uid,
        reason=None,
        inputs=found.inputs,
        sinks=found.sinks,
        dead=dead_of_files + sum(max(count.entries, count.records) for count in view.dead.values()),
    )


def unknown_flow(record: PipelineRecord, reason: str) -> PipelineFlow:
    return PipelineFlow(
        name=record.name, uid=record.pipeline_uid, reason=reason, inputs=(), sinks=(), dead=0
    )
