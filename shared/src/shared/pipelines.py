"""What this process knows of all pipelines: the newest record of each, by name and by input id.

Fed from `waybill.pipelines`; never writes. Deleted pipelines stay, so their tokens still resolve.
"""

import threading
from dataclasses import dataclass
from uuid import NAMESPACE_URL, UUID, uuid5

from shared.events import PipelineRecord
from shared.tokens import input_id

UID_NAMESPACE: UUID = uuid5(NAMESPACE_URL, "urn:waybill:pipeline")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOwner:
    record: PipelineRecord
    input_name: str


class PipelineDirectory:
    """Thread-safe: one follower writes, requests read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_uid: dict[str, PipelineRecord] = {}
        self._by_name: dict[tuple[str, str], PipelineRecord] = {}
        self._inputs: dict[str, InputOwner] = {}

    def accept(self, record: PipelineRecord) -> None:
        with self._lock:
            self._by_uid[record.pipeline_uid] = record
            name = (record.tenant, record.name)
            known = self._by_name.get(name)
            if known is None or known.created_at <= record.created_at:
                self._by_name[name] = record
            for input_name in record.root_inputs():
                key = input_id(record.tenant, record.pipeline_uid, input_name)
                self._inputs[key] = InputOwner(record=record, input_name=input_name)

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None:
        """The living pipeline of that name."""
        with self._lock:
            record = self._by_name.get((tenant, name))
        return None if record is None or record.desired == "deleted" else record

    def owner_of(self, key: str) -> InputOwner | None:
        with self._lock:
            return self._inputs.get(key)

    def living(self, tenant: str) -> list[PipelineRecord]:
        with self._lock:
            records = list(self._by_uid.values())
        alive = [r for r in records if r.tenant == tenant and r.desired != "deleted"]
        return sorted(alive, key=lambda record: record.name)

    def uid_for(self, tenant: str, name: str) -> str:
        """The uid of the living pipeline of that name, else the one that its next life will have.

        Derived from the number of lives before, so that two creations at once mean one pipeline.
        """
        alive = self.by_name(tenant, name)
        if alive is not None:
            return alive.pipeline_uid
        with self._lock:
            lives = sum(r.tenant == tenant and r.name == name for r in self._by_uid.values())
        return str(uuid5(UID_NAMESPACE, f"{tenant}/{name}/{lives}"))
