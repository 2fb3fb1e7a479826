"""The stage that a commit is of, and a commit as a message."""

from dataclasses import dataclass

from waybill_shared.contract import codec
from waybill_shared.contract.events import Commit, Fact, pipeline_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which stage of which pipeline, under which lease."""

    tenant: str
    pipeline_uid: str
    generation: int
    epoch: int
    lifecycle_id: str = ""  # of the topic in which `epoch` counts


def message_of(commit: Commit, identity: Identity, now_ms: int) -> tuple[str, bytes]:
    """Return key and value of the fact that contains `commit`."""
    fact = Fact(
        tenant=identity.tenant,
        pipeline_uid=identity.pipeline_uid,
        generation=identity.generation,
        at=now_ms,
        body=commit,
    )
    return pipeline_key(fact.tenant, fact.pipeline_uid), codec.encode(fact)
