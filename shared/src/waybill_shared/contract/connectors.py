"""How far a connector has fetched its file: the messages of `waybill.connectors`.

The newest message of a key counts. Each is written in the same transaction as the rows that it
reports.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from waybill_shared.contract.vectors import Span

URL_HASH_CHARACTERS: Final = 16
NUMBERED: Final = re.compile(r"unnamed-\d+")
"""One that has no name in its manifest, by its place in the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorProgress:
    """Progress of a connector.

    `rows` of the file were read, `records` of them were written, and `dead` could not be read as
    records; `spans` are the offsets of all that were written.

    `version`: of the file, as its server reports it; `form`: how it is read. `error`: why the last
    attempt failed; `note`: what else a person should know.
    """

    tenant: str
    pipeline_uid: str
    topic: str
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
        """The identity of the connector. An input may be renamed, and a connector without a name of
        its own may move in its list: they still fetch the same file into the same topic."""
        name = "" if NUMBERED.fullmatch(self.connector) else self.connector
        digest = sha256(self.url.encode()).hexdigest()[:URL_HASH_CHARACTERS]
        return f"{self.tenant}/{self.pipeline_uid}/{self.topic}/{name}/{digest}"
