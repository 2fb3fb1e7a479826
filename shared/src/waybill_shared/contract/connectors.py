"""How far a connector has fetched its file: the messages of `waybill.connectors`. The newest of a
key counts, and each stands in the transaction of the rows that it tells of."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from waybill_shared.contract.vectors import Span

URL_HASH_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorProgress:
    """`rows` of the file were read, of which `records` were written and `dead` were none; `spans`
    have all that were written. `version`: of the file, as its server tells it; `form`: how it is
    read. `error`: why the last attempt failed; `note`: what else a person should know."""

    tenant: str
    pipeline_uid: str
    input: str
    connector: str
    url: str
    at: int
    state: str
    form: str = ""
    rows: int = 0
    records: int = 0
    dead: int = 0
    bytes: int = 0
    size: int | None = None
    version: str | None = None
    spans: tuple[Span, ...] = ()
    error: str | None = None
    note: str | None = None

    @property
    def key(self) -> str:
        return connector_key(
            self.tenant, self.pipeline_uid, self.input, self.connector, url=self.url
        )


def connector_key(tenant: str, pipeline_uid: str, source: str, name: str, *, url: str) -> str:
    """Another URL is another connector."""
    digest = sha256(url.encode()).hexdigest()[:URL_HASH_CHARACTERS]
    return f"{tenant}/{pipeline_uid}/{source}/{name}/{digest}"
