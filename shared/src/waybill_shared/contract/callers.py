"""Who asks: what use cases know of whoever sent a request."""

from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.routes import Scope

ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`key_id` is None where no API keys are in use: nobody knows then who it is."""

    tenant: str
    scopes: frozenset[Scope]
    key_id: str | None

    @property
    def actor(self) -> str:
        """The name of the caller in commands, operations and events."""
        return self.key_id or ANONYMOUS
