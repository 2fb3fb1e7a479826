"""The stage that a commit is of, the commit of a fence, and a commit as a message."""

from dataclasses import dataclass

from waybill_shared.contract import codec
from waybill_shared.contract.batches import BatchReport
from waybill_shared.contract.events import Commit, Fact, Fence, pipeline_key
from waybill_shared.contract.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The stage, its pipeline, and the lease under which it runs."""

    tenant: str
    pipeline_uid: str
    generation: int
    epoch: int
    lifecycle_id: str = ""  # of the topic in which `epoch` counts

    def is_before(self, fence: Fence | None) -> bool:
        """Return True if a driver of a later claim has moved the fence."""
        return (
            fence is not None
            and fence.lifecycle_id == self.lifecycle_id
            and fence.epoch > self.epoch
        )


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


def commit_of(
    fence: Fence,
    batch: BatchReport,
    *,
    since: int,
    key: str,
    versions_from: int,
    replayed: Vector,
) -> Commit:
    """Return the commit that reports a fence. `since` and `key` are of its sink; `replayed`: at
    least as far as the fence says."""
    return Commit(
        stage=fence.stage,
        sink=fence.sink,
        since=since,
        epoch=fence.epoch,
        batch=batch,
        inputs=fence.inputs,
        frontier=fence.frontier,
        outputs=fence.outputs,
        set_aside=fence.set_aside,
        versions_from=versions_from,
        rewind=fence.rewind,
        rewound=fence.rewound,
        key=key,
        replayed=replayed,
    )
