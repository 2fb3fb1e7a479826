"""How a catalog of Iceberg tables is reached, and what the errors of one mean to a pipeline."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import AfterValidator, Field, model_validator
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    ForbiddenError,
    OAuthError,
    RESTError,
    UnauthorizedError,
    WaitingForLockException,
)
from sqlalchemy.exc import SQLAlchemyError
from thrift.Thrift import TException

from waybill_shared.connections import ConnectionSettings, Secret
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.fields import Name
from waybill_spark.sinks.contract import SinkUnreachable

AWAY: Final = (
    SQLAlchemyError,
    RESTError,
    BotoCoreError,
    ClientError,
    TException,
    WaitingForLockException,
    OSError,
)
"""What catalogs and stores raise of themselves; OSError is also that of `requests`."""
DENIED: Final = (
    UnauthorizedError,
    ForbiddenError,
    AuthorizationExpiredError,
    OAuthError,
)
REFUSED: Final = re.compile(
    r"password authentication failed|no pg_hba\.conf entry|database .* does not exist"
    r"|no password supplied|permission denied for|certificate verify failed"
    r"|ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId"
    r"|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|NO_SUCH_BUCKET|UnrecognizedClient",
    re.IGNORECASE,
)
"""What a server that answers says to who may not come in."""
SAID_MAX: Final = 300


def _is_place(text: str) -> str:
    if not re.match(r"(s3|file)://|/", text):
        raise ValueError("write s3://BUCKET/PATH or a folder that begins with /")
    return text.rstrip("/")


Place = Annotated[str, AfterValidator(_is_place)]


class IcebergConnection(ConnectionSettings):
    kind: Literal["iceberg"]
    catalog: Literal["rest", "sql", "hive", "glue"]
    uri: str | None = Field(default=None, min_length=1)
    """Of REST and Hive."""
    database: Name | None = None
    """Of SQL: a connection to a Postgres."""
    name: str | None = Field(default=None, min_length=1, max_length=255)
    """What the catalog is called in a database that has several."""
    warehouse: Place | None = None
    """Where tables are made; None: as the catalog says."""
    objects: Name | None = None
    """The connection to the store that has the files, and the keys for Glue."""
    token: Secret | None = None
    credential: Secret | None = None
    scope: str | None = Field(default=None, min_length=1)
    root_certificate: Path | None = Field(default=None, alias="rootCertificate")

    @model_validator(mode="after")
    def _has_what_its_catalog_needs(self) -> "IcebergConnection":
        needs = {"rest": "uri", "hive": "uri", "sql": "database"}.get(self.catalog)
        if needs is not None and getattr(self, needs) is None:
            raise ValueError(f"a catalog of kind {self.catalog} needs {needs}")
        only = {"uri": ("rest", "hive"), "database": ("sql",), "name": ("sql",)}
        only |= dict.fromkeys(("token", "credential", "scope", "root_certificate"), ("rest",))
        for key, catalogs in only.items():
            if getattr(self, key) is not None and self.catalog not in catalogs:
                said = "rootCertificate" if key == "root_certificate" else key
                raise ValueError(f"{said} is for {' and '.join(catalogs)}, not {self.catalog}")
        if self.catalog == "sql" and self.warehouse is None:
            raise ValueError("a catalog of kind sql needs a warehouse: where tables are made")
        if self.uri is not None and "@" in self.uri:
            raise ValueError("an address with a password in it is not taken: see token, credential")
        return self


@dataclass(frozen=True, slots=True)
class Reached:
    """A catalog as messages speak of it."""

    what: str
    """The sink, or the connection."""
    place: str


@contextmanager
def told(reached: Reached) -> Iterator[None]:
    """Errors of catalog and store as what they mean: a person is needed, or only time."""
    try:
        yield
    except AWAY as error:
        raise meaning(error, reached) from error


def meaning(error: Exception, reached: Reached) -> Exception:
    said = why(error)
    message = f"{reached.what} cannot be reached: {said}"
    if isinstance(error, DENIED) or REFUSED.search(str(error)):
        hint = f"mend the connection's file, or the rights at {reached.place}; then start again"
        return UserError([Problem(message=message, hint=hint)])
    hint = f"see that {reached.place} answers, has room and may be written to; it is tried again"
    return SinkUnreachable(message, hint=hint)


def why(error: Any) -> str:  # noqa: ANN401 - errors of five libraries
    """What was said, without the statement that it was said of."""
    said = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return said.splitlines()[0][:SAID_MAX]
