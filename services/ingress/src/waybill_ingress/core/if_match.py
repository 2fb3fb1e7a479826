"""Reads `If-Match`: a client demands that ingress knows a change that was reported to it."""

import re
from dataclasses import dataclass

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug

PATTERN = re.compile(r'"(?:([0-9a-f-]{36})/)?([0-9]{1,9})"')
HINT = '`If-Match: "3"` is the generation of the pipeline, `"UID/3"` that of this very life of it'


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """At least this generation. With `uid` it is that of one life of the pipeline, or of any later
    life.
    """

    generation: int
    uid: str | None = None


def read_demand(header: str | None) -> Demand | None:
    if header is None or header.strip() == "*":
        return None
    found = PATTERN.fullmatch(header.strip())
    if found is None:
        raise Refusal(Slug.BAD_IF_MATCH, f"If-Match: {header[:100]} is no generation", hint=HINT)
    return Demand(generation=int(found[2]), uid=found[1])


def meets(record: PipelineRecord, demand: Demand | None, named: PipelineRecord | None) -> bool:
    """Return True if `record` is new enough. `named` is the life that the demand names, if it is
    known.
    """
    if demand is None:
        return True
    if demand.uid in (None, record.pipeline_uid):
        return record.generation >= demand.generation
    return named is not None and named.desired == "deleted"


def too_old(record: PipelineRecord, demand: Demand) -> Refusal:
    detail = (
        f"generation {demand.generation} of pipeline {record.name} is not known here yet: this"
        f" ingress knows generation {record.generation}"
    )
    hint = "try again in a moment; without If-Match the generation that is known here is used"
    return Refusal(Slug.PIPELINE_BEHIND, detail, hint=hint, generation=record.generation)
