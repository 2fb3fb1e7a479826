"""How a PostgreSQL is reached: a connection of kind `postgres`."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from waybill_shared.connections import ConnectionSettings, Secret

CONNECT_TIMEOUT_S: Final = 10
SILENCE_S: Final = 30  # of the network, until a connection counts as lost


def _no_url(part: str) -> str:
    if any(sign in part for sign in ("://", "@", "=")):
        raise ValueError("this is no name; an address with a password in it is not allowed")
    return part


Part = Annotated[str, Field(min_length=1), AfterValidator(_no_url)]


class PostgresConnection(ConnectionSettings):
    kind: Literal["postgres"]
    host: Part
    port: int = Field(default=5432, ge=1, le=65_535)
    database: Part
    user: str = Field(min_length=1)
    password: Secret | None = None
    sslmode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    root_certificate: Path | None = Field(default=None, alias="rootCertificate")
    fences: str = Field(default="public", alias="schema", min_length=1, max_length=63)
    """The schema that has the fences."""

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"
