"""A REST catalog of Iceberg tables on loopback, over PyIceberg's own SQL catalog.

It asks for a token, and can be told to do what a server does in bad moments.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final, Literal

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import SortOrder

TOKEN: Final = "of-the-tests"
STATUS: Final = {
    CommitFailedException: 409,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
}
Trouble = Literal["", "lose_the_answer", "deny_what_is_done", "unavailable"]


@dataclass
class RestServer:
    catalog: SqlCatalog
    uri: str = ""
    trouble: Trouble = ""
    """Of the next commit, once."""
    meanwhile: Callable[[], None] = lambda: None
    """What happens before a commit is denied."""
    says: dict[str, Any] = field(default_factory=dict)
    """Of itself, to who opens it."""
    commits: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        parts = path.partition("?")[0].strip("/").split("/")[1:]
        match method, parts:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": self.says}
            case "GET", ["namespaces"]:
                return 200, {"namespaces": [[*each] for each in self.catalog.list_namespaces()]}
            case "HEAD", ["namespaces", namespace]:
                return 204 if self.catalog.namespace_exists(namespace) else 404, {}
            case "POST", ["namespaces"]:
                self.catalog.create_namespace(tuple(body["namespace"]))
                return 200, {"namespace": body["namespace"], "properties": {}}
            case "POST", ["namespaces", namespace, "tables"]:
                made = self.catalog.create_table(
                    (namespace, body["name"]),
                    Schema.model_validate(body["schema"]),
                    partition_spec=PartitionSpec.model_validate(body["partition-spec"]),
                    sort_order=SortOrder.model_validate(body["write-order"]),
                    properties=body["properties"],
                )
                return 200, _loaded(made)
            case "GET", ["namespaces", namespace, "tables", table]:
                return 200, _loaded(self.catalog.load_table((namespace, table)))
            case "POST", ["namespaces", namespace, "tables", table]:
                return self._commit(self.catalog.load_table((namespace, table)), body)
            case _:
                return 404, _error(404, f"no such route: {method} {path}")

    def _commit(self, table: Table, body: dict[str, Any]) -> tuple[int, Any]:
        trouble, self.trouble = self.trouble, ""
        if trouble == "unavailable":
            return 503, _error(503, "not now")
        asked = CommitTableRequest.model_validate(body)
        done = self.catalog.commit_table(table, asked.requirements, asked.updates)
        self.commits.append(done.metadata_location)
        if trouble == "lose_the_answer":
            raise ConnectionAbortedError
        if trouble == "deny_what_is_done":
            self.meanwhile()
            return 409, _error(409, "a retry of a proxy found it done")
        return 200, json.loads(done.model_dump_json())


def _loaded(table: Table) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "Told", "code": code}}


class Handler(BaseHTTPRequestHandler):
    served: RestServer

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        try:
            self._tell(*self._answer(body))
        except ConnectionAbortedError:
            self.close_connection = True

    do_HEAD = do_POST = do_GET  # noqa: N815 - as the library has it

    def _answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, _error(401, "who are you?")
        try:
            return self.served.answer(self.command, self.path, body)
        except tuple(STATUS) as error:
            code = STATUS[type(error)]
            return code, _error(code, str(error))

    def _tell(self, code: int, answer: object) -> None:
        text = json.dumps(answer).encode() if self.command != "HEAD" else b""
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving_catalog(folder: Path) -> Iterator[RestServer]:
    uri = f"sqlite:///{folder / 'rest.db'}"
    server = RestServer(SqlCatalog("served", uri=uri, warehouse=f"file://{folder / 'served'}"))
    http = HTTPServer(("127.0.0.1", 0), type("Served", (Handler,), {"served": server}))
    server.uri = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
