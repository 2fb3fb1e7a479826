"""The file that says how databases and object stores are reached. Manifests name a connection, and
know no more.

    warehouse:
      kind: postgres
      host: db.example
      …

`python -m waybill_shared.connections check` tries each. A secret is in the environment or in a
separate file, and is read when it is used: it is in no message, no log and no other file.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from waybill_shared.contract.errors import ContractError, Problem, Retryable, UserError
from waybill_shared.contract.manifest.document import Document
from waybill_shared.contract.manifest.yaml_source import read_yaml
from waybill_shared.contract.suggestions import hint_of_names

SETTING: Final = "WAYBILL_CONNECTIONS_FILE"
SECRET_HINT: Final = "see docs/connections.md"
CONNECTORS: Final = {
    "iceberg": "waybill_spark.sinks.iceberg.connector",
    "postgres": "waybill_spark.sinks.postgres.connector",
    "s3": "waybill_ingress.adapters.files.connector",
}
"""The module that tries a connection, by kind. It does so with its `CONNECTOR`."""
LEADS_TO: Final[Mapping[str, Mapping[str, object]]] = {
    "postgres": {"host": None, "port": 5432, "database": None},
    "rest": {"uri": None, "warehouse": None},
    "sql": {"database": None, "name": None},
    "hive": {"uri": None},
    "glue": {"uri": None, "objects": None},
}
"""The keys that say where a connection leads, by kind or by catalog of Iceberg, with their
defaults. All others say how to connect."""


class Secret(BaseModel):
    """The location of a secret: in a variable of the environment, or in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: str | None = Field(default=None, pattern="^WAYBILL_")
    """One of ours, because Spark's queries may read every other variable."""
    file: Path | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_a_place(cls, raw: object) -> object:
        if not isinstance(raw, dict) or raw.keys() not in ({"env"}, {"file"}):
            # a password that is written here stays out of the message
            raise ValueError("write {env: NAME} or {file: PATH}; the secret itself stays out of it")
        return raw

    def read(self, connection: str) -> str:
        if self.env is not None:
            value = os.environ.get(self.env)
            if value is None:
                raise _no_secret(connection, f"the variable {self.env} is not set")
            return _as_text(value.rstrip("\r\n"), connection, f"the variable {self.env}")
        assert self.file is not None
        try:
            value = self.file.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise _no_secret(connection, f"{self.file}: {error.strerror}") from None
        return _as_text(value.rstrip("\r\n"), connection, str(self.file))


class ConnectionSettings(BaseModel):
    """Base of the settings of a connection: what every kind has.

    The models of each kind are in the packages of its sinks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    kind: str


C = TypeVar("C", bound=ConnectionSettings)


class Connector(Protocol):
    """One kind of connections."""

    def reach(self, name: str, connections: "Connections") -> str:
        """Connect and return a line about what answers there.

        Raise UserError or Retryable with the reason if nothing does.
        """


@dataclass(frozen=True, slots=True)
class Connections:
    """All that are known. Their models are checked when one is used."""

    file: Path | None
    document: Document | None

    def names(self) -> list[str]:
        return [] if self.document is None else list(self.document.tree)

    def kind_of(self, name: str) -> str:
        raw = self._raw(name)
        kind = raw.get("kind") if isinstance(raw, Mapping) else None
        if kind not in CONNECTORS:
            message = f"connection {name}: its kind is none that is known"
            raise self._refusal(message, hint_of_names(str(kind), list(CONNECTORS), "kinds"), name)
        return str(kind)

    def find(self, name: str, model: type[C]) -> C:
        raw = self._raw(name)
        try:
            return model.model_validate(_plain(raw))
        except ValidationError as error:
            raise UserError([*self._problems(name, model, error)]) from None

    def _raw(self, name: str) -> Any:  # noqa: ANN401 - what a person wrote
        names = self.names()
        if self.document is None or name not in names:
            local = f"the file of {SETTING}; `waybill up --with postgres` writes one"
            where = local if self.file is None else str(self.file)
            hint = hint_of_names(name, names, "known") or f"say how to reach it in {where}"
            message = f"no connection is called {name!r}"
            raise UserError([Problem(message=message, path="connection", hint=hint)])
        return self.document.tree[name]

    def _problems(
        self, name: str, model: type[ConnectionSettings], error: ValidationError
    ) -> Iterator[Problem]:
        known = [field.alias or key for key, field in model.model_fields.items()]
        for item in error.errors(include_input=False, include_url=False):
            path = (name, *item["loc"])
            hint = f"known here: {', '.join(known)}" if item["type"] == "extra_forbidden" else ""
            said = item["msg"].removeprefix("Value error, ")
            message = f"connection {'.'.join(map(str, path))}: {said}"
            yield from self._refusal(message, hint, *path).problems

    def _refusal(self, message: str, hint: str, *path: str | int) -> UserError:
        """Return the error with the place in the connections file. A manifest has no such place."""
        assert self.document is not None
        placed = self.document.place(Problem(message=message, hint=hint), path)
        at = f"{self.file}:{placed.line}:{placed.column}: "
        return UserError([Problem(message=at + message, hint=hint or SECRET_HINT)])


def read_connections(file: Path | None) -> Connections:
    if file is None:
        return Connections(None, None)
    try:
        return Connections(file, read_yaml(file.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        message = f"{SETTING}: {file} cannot be read: {getattr(error, 'strerror', error)}"
        raise UserError([Problem(message=message)]) from None
    except UserError as error:
        # Hints of YAML quote the line, and it may contain a password.
        raise UserError(
            [
                Problem(message=f"{file}:{p.line}:{p.column}: {p.message}", hint=SECRET_HINT)
                for p in error.problems
            ]
        ) from None


def places_in(file: Path | None) -> dict[str, str]:
    """Return by name of each connection where it leads, as far as the file says: names that have
    the same are one database or catalog. Nothing if it cannot be read."""
    try:
        known = read_connections(file)
    except UserError:
        return {}
    raw = {} if known.document is None else known.document.tree
    if not isinstance(raw, Mapping):
        return {}
    return {str(name): place for name in raw if (place := _place(raw, str(name))) is not None}


def _place(raw: Mapping[str, Any], name: str) -> str | None:
    at = raw.get(name)
    if not isinstance(at, Mapping):
        return None
    kind = at.get("catalog", at.get("kind"))
    keys = LEADS_TO.get(kind) if isinstance(kind, str) else None
    if keys is None:
        return None
    values = {key: at.get(key, default) for key, default in keys.items()}
    if kind == "sql":  # a database is a connection, and the catalog in it is called as this one
        database = str(values["database"])
        values["database"] = _place(raw, database) if database != name else None
        values["name"] = values["name"] or name
    parts = (str(value).lower().rstrip("/") for value in values.values() if value is not None)
    return " ".join((kind, *parts))


def _as_text(secret: str, connection: str, where: str) -> str:
    """Return the secret as text.

    Refuse one that no client can send, because the error of the client would show it.
    """
    try:
        secret.encode("utf-8")
    except UnicodeEncodeError:
        raise _no_secret(connection, f"{where}: it is not text") from None
    if any(ord(character) < ord(" ") for character in secret):
        raise _no_secret(connection, f"{where}: it has a line end or the like in it")
    return secret


def _plain(raw: Any) -> Any:  # noqa: ANN401 - what a person wrote
    return dict(raw) if isinstance(raw, Mapping) else raw


def _no_secret(connection: str, why: str) -> UserError:
    message = f"connection {connection}: no secret: {why}"
    return UserError([Problem(message=message, hint=SECRET_HINT)])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m waybill_shared.connections",
        description="Tries every connection of the file, and says what answers.",
    )
    parser.add_argument("command", choices=["check"])
    parser.add_argument(
        "--file", type=Path, default=os.environ.get(SETTING), help=f"default: ${SETTING}"
    )
    arguments = parser.parse_args()
    if arguments.file is None:
        parser.error(f"name a file: --file FILE, or {SETTING}=FILE")
    try:
        connections = read_connections(arguments.file)
    except UserError as error:
        _report(error)
        return 1
    failed = [name for name in connections.names() if not _answers(name, connections)]
    return int(bool(failed))


def _answers(name: str, connections: Connections) -> bool:
    try:
        kind = connections.kind_of(name)
        try:
            connector: Connector = import_module(CONNECTORS[kind]).CONNECTOR
        except ModuleNotFoundError as error:
            print(f"{name}: not tried: {error.name} is not installed here, and {kind} needs it")
            return False
        print(f"{name}: {connector.reach(name, connections)}")
    except (UserError, Retryable) as error:
        _report(error)
        return False
    return True


def _report(error: ContractError) -> None:
    hint = getattr(error, "hint", "")  # of a sink that is away
    other = [Problem(message=str(error), hint=hint)]
    problems = error.problems if isinstance(error, UserError) else other
    for problem in problems:
        hint = f"\n  {problem.hint}" if problem.hint else ""
        print(f"{problem.message}{hint}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
