"""The newest record of each pipeline, by name, by uid and by short id.

A thread feeds it from `waybill.pipelines`. Deleted pipelines stay, so their tokens still resolve.
"""

import threading
from uuid import NAMESPACE_URL, UUID, uuid5

from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.former_names import first_name, names_of
from waybill_shared.contract.pipelines import Life
from waybill_shared.contract.tokens import pipeline_id

UID_NAMESPACE: UUID = uuid5(NAMESPACE_URL, "urn:waybill:pipeline")


class PipelineDirectory:
    """Thread-safe: one follower writes, requests read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_uid: dict[str, PipelineRecord] = {}
        self._by_name: dict[tuple[str, str], PipelineRecord] = {}
        self._by_id: dict[str, PipelineRecord] = {}

    def accept(self, record: PipelineRecord) -> None:
        """Accept a record. The newest life of a name is the one with the highest number, whatever
        clocks say.
        """
        with self._lock:
            self._by_uid[record.pipeline_uid] = record
            self._by_id[pipeline_id(record.tenant, record.pipeline_uid)] = record
            name = (record.tenant, first_name(record))
            known = self._by_name.get(name)
            if known is None or known.life <= record.life:
                self._by_name[name] = record

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None:
        """Return the pipeline that is called so now and is not deleted."""
        holder = self._holder(tenant, name)
        return None if holder is None or holder.name != name else holder

    def former_holder(self, tenant: str, name: str) -> PipelineRecord | None:
        """Return the pipeline that has another name now, and keeps this one: it was called so, or
        is to be called so and is not yet.
        """
        holder = self._holder(tenant, name)
        return None if holder is None or holder.name == name else holder

    def by_uid(self, uid: str) -> PipelineRecord | None:
        """Return that life of a pipeline, also after its end."""
        with self._lock:
            return self._by_uid.get(uid)

    def owner_of(self, short_id: str) -> PipelineRecord | None:
        """Return the pipeline to which a part of a token belongs."""
        with self._lock:
            return self._by_id.get(short_id)

    def living(self, tenant: str) -> list[PipelineRecord]:
        alive = [record for record in self.everywhere() if record.tenant == tenant]
        return sorted(alive, key=lambda record: record.name)

    def lives(self) -> list[PipelineRecord]:
        """Return all pipelines of all tenants, deleted ones too."""
        with self._lock:
            return list(self._by_uid.values())

    def everywhere(self) -> list[PipelineRecord]:
        """Return the pipelines of all tenants that are not deleted."""
        return [record for record in self.lives() if record.desired != "deleted"]

    def life_for(self, tenant: str, name: str) -> Life:
        """Return the life of the pipeline that has or had that name, or the next one if it is
        deleted or never existed. The uid is derived from the number, so that two creations at once
        mean one pipeline.
        """
        with self._lock:
            newest = self._by_name.get((tenant, name))
        holder = self._holder(tenant, name)
        if holder is not None:
            return Life(uid=holder.pipeline_uid, number=holder.life)
        number = 0 if newest is None else newest.life + 1
        return Life(uid=str(uuid5(UID_NAMESPACE, f"{tenant}/{name}/{number}")), number=number)

    def _holder(self, tenant: str, name: str) -> PipelineRecord | None:
        """Return the pipeline to which the newest life of a name belongs, if it is not deleted: the
        one that began with it, or the one for which it was reserved. A name that it has not got
        until its next generation is free.
        """
        with self._lock:
            newest = self._by_name.get((tenant, name))
            if newest is not None and newest.reserved_for:
                newest = _held(newest, name, self._by_uid.get(newest.reserved_for))
        return None if newest is None or newest.desired == "deleted" else newest


def _held(
    reservation: PipelineRecord, name: str, record: PipelineRecord | None
) -> PipelineRecord | None:
    """Return the pipeline for which the name was reserved; None if it may not get it any more."""
    if record is None or name in names_of(record) or record.generation <= reservation.reserved_in:
        return record
    return None
