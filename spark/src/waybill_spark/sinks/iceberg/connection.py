"""How a catalog of Iceberg tables is reached, and what the errors of one mean to a pipeline."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator
from pyiceberg import exceptions
from sqlalchemy.exc import SQLAlchemyError

from waybill_shared.connections import ConnectionSettings, Secret
from waybill_shared.contract.errors import ContractError, Problem, UserError
from waybill_shared.contract.manifest.fields import Name
from waybill_spark.sinks.iceberg.file_access import OutsideWarehouse
from waybill_spark.tracking.sink import SinkUnreachable

WAREHOUSE: Final = r"(s3|file)://|/"
PLACE: Final = r"[a-z][a-z0-9]*://[^/]|file:///|/"
Folder = Annotated[str, Field(pattern=f"^({PLACE})")]
AWAY: Final = (SQLAlchemyError, exceptions.RESTError, exceptions.WaitingForLockException, OSError)
"""Errors that catalogs and stores raise. Those of `requests` are OSErrors, too."""
LAZY: Final = ("botocore.", "thrift.", "hive_metastore.")
"""Modules that a driver loads only if it needs them."""
ODD: Final = (
    ValueError,
    TypeError,
    KeyError,
    NotImplementedError,
    exceptions.NotInstalledError,
    exceptions.NoSuchNamespaceError,
)
"""Errors of PyIceberg when the server is no catalog, or has something that it cannot read."""
EXPIRED: Final = (exceptions.UnauthorizedError, exceptions.AuthorizationExpiredError)
DENIED: Final = (
    exceptions.UnauthorizedError,
    exceptions.ForbiddenError,
    exceptions.AuthorizationExpiredError,
    exceptions.OAuthError,
    exceptions.BadRequestError,
)
REFUSED: Final = re.compile(
    r"password authentication failed|no pg_hba\.conf entry|database .* does not exist"
    r"|no password supplied|permission denied for|certificate verify failed"
    r"|ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId"
    r"|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|NO_SUCH_BUCKET|UnrecognizedClient",
    re.IGNORECASE,
)
"""Messages of a server that refuses a login."""
SAID_MAX: Final = 300
HIVE_3_TYPE: Final = "'timestamp with local time zone'"
"""The type that a metastore of Hive 2 reports as unknown."""


SCHEMES: Final = {"rest": "https?://", "hive": "thrift://", "glue": "https?://"}


class IcebergConnection(ConnectionSettings):
    kind: Literal["iceberg"]
    catalog: Literal["rest", "sql", "hive", "glue"]
    uri: str | None = Field(default=None, min_length=1)
    """The address of a REST catalog, of Hive, or of a Glue that is not AWS's."""
    database: Name | None = None
    """For a SQL catalog: a connection to a Postgres."""
    name: str | None = Field(default=None, min_length=1, max_length=255)
    """The name of the catalog in a database that has several."""
    warehouse: str | None = Field(default=None, min_length=1)
    """Where tables are made, or the name of that in a REST catalog. None: the catalog decides."""
    folders: tuple[Folder, ...] = Field(default=(), max_length=64)
    """More places where tables may have files."""
    objects: Name | None = None
    """The connection to the store that has the files, and the keys for Glue."""
    token: Secret | None = None
    credential: Secret | None = None
    scope: str | None = Field(default=None, min_length=1)
    root_certificate: Path | None = Field(default=None, alias="rootCertificate")
    hive_version: Literal[2, 3, 4] | None = Field(default=None, alias="hiveVersion")
    """None: 3 or later."""

    @model_validator(mode="after")
    def _has_what_its_catalog_needs(self) -> "IcebergConnection":
        needs = {"rest": "uri", "hive": "uri", "sql": "database"}.get(self.catalog)
        if needs is not None and getattr(self, needs) is None:
            raise ValueError(f"a catalog of kind {self.catalog} needs {needs}")
        only = {"uri": tuple(SCHEMES), "database": ("sql",), "name": ("sql",)}
        only |= dict.fromkeys(("token", "credential", "scope", "root_certificate"), ("rest",))
        only["hive_version"] = ("hive",)
        for key, catalogs in only.items():
            if getattr(self, key) is not None and self.catalog not in catalogs:
                said = type(self).model_fields[key].alias or key
                raise ValueError(f"{said} is for {' and '.join(catalogs)}, not {self.catalog}")
        if self.catalog == "sql" and self.warehouse is None:
            raise ValueError("a catalog of kind sql needs a warehouse: where tables are made")
        self._refuse_places()
        return self

    def _refuse_places(self) -> None:
        if self.uri is not None and "@" in self.uri:
            raise ValueError(
                "an address with a password in it is not accepted: see token, credential"
            )
        scheme = SCHEMES.get(self.catalog)
        if self.uri is not None and scheme is not None and not re.match(scheme, self.uri):
            raise ValueError(f"uri: write {scheme.replace('s?', 's')}HOST:PORT")
        named = self.catalog == "rest" or self.warehouse is None
        if not named and not re.match(WAREHOUSE, self.warehouse or ""):
            raise ValueError("warehouse: write s3://BUCKET/PATH or a folder that begins with /")

    @property
    def all_folders(self) -> tuple[str, ...]:
        """The folders that files of tables may be in; none if only the catalog knows."""
        warehouse = self.warehouse or ""
        named = (warehouse,) if re.match(PLACE, warehouse) else ()
        return tuple(map(as_location, (*named, *self.folders)))


def as_location(place: str) -> str:
    """Return a warehouse or a folder as PyIceberg has it."""
    plain = place.rstrip("/") or "/"
    return f"file://{plain}" if plain.startswith("/") else plain


@dataclass(frozen=True, slots=True)
class Reached:
    """A catalog as messages speak of it."""

    what: str
    """The sink, or the connection."""
    place: str
    was_open: bool = False
    """True if it has accepted us before: then a key that it refuses may have expired."""


@contextmanager
def translate_errors(reached: Reached) -> Iterator[None]:
    """Convert errors of catalog and store: either a person must act, or only time is needed."""
    try:
        yield
    except OutsideWarehouse as error:
        problem = Problem(message=f"{reached.what}: {error}", hint=error.hint)
        raise UserError([problem]) from None
    except (ContractError, exceptions.CommitFailedException, exceptions.NoSuchTableError):
        raise
    except Exception as error:
        if isinstance(error, AWAY) or type(error).__module__.startswith(LAZY):
            raise translate(error, reached) from error
        if isinstance(error, ODD):  # its text may have parts of an answer, and keys in it
            message = f"{reached.what}: what {reached.place} answers cannot be read"
            hint = f"see that it is a catalog of Iceberg tables ({type(error).__name__})"
            raise UserError([Problem(message=message, hint=hint)]) from None
        raise


def translate(error: Exception, reached: Reached) -> Exception:
    said = why(error)
    message = f"{reached.what} cannot be reached: {said}"
    if HIVE_3_TYPE in said:
        hint = (
            "its metastore is of Hive 2: write hiveVersion: 2 into the connection, and drop the"
            " table, which has no rows yet; then start again"
        )
        return UserError([Problem(message=message, hint=hint)])
    again = reached.was_open and isinstance(error, EXPIRED)
    if not again and (isinstance(error, DENIED) or REFUSED.search(str(error))):
        hint = f"mend the connection's file, or the rights at {reached.place}; then start again"
        return UserError([Problem(message=message, hint=hint)])
    hint = f"see that {reached.place} answers, has room and may be written to; it is tried again"
    return SinkUnreachable(message, hint=hint)


def why(error: Any) -> str:  # noqa: ANN401 - errors of five libraries
    """Return the message, without the statement that it is about."""
    said = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return said.splitlines()[0][:SAID_MAX]
