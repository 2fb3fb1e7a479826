"""`waybill version`: of this client, of each service that answers, and of none at all."""

import json

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer
from waybill.version import client_version

NOBODY = "http://127.0.0.1:9"
OURS = f"waybill {client_version()}"
SERVERS = Response(
    json={
        "service": "gateway",
        "version": "0.3.0",
        "services": {
            "ingress": {"service": "ingress", "version": "0.2.0"},
            "status": {"error": "connection refused"},
        },
    }
)


def test_each_service_tells_its_own(command: Command, server: ScriptedServer) -> None:
    server.answer("GET", "/version", SERVERS)
    result = command("version")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        OURS,
        "gateway  0.3.0",
        "ingress  0.2.0",
        "status   no answer",
    ]


def test_as_json(command: Command, server: ScriptedServer) -> None:
    server.answer("GET", "/version", SERVERS)
    assert json.loads(command("version", "-o", "json").stdout) == {
        "client": client_version(),
        "servers": {"gateway": "0.3.0", "ingress": "0.2.0", "status": None},
        "error": None,
    }


def test_a_server_without_services_tells_its_own(command: Command, server: ScriptedServer) -> None:
    server.answer("GET", "/version", Response(json={"service": "status", "version": "0.3.0"}))
    assert command("version").stdout.splitlines() == [OURS, "status  0.3.0"]


def test_where_nobody_answers_it_says_so_and_is_no_error(command: Command) -> None:
    result = command("version", "--url", NOBODY)
    assert (result.exit_code, result.stdout) == (0, f"{OURS}\n")
    assert result.stderr.startswith(
        f"no service answers with its version: nothing listens at {NOBODY}"
    )
    told = json.loads(command("version", "--url", NOBODY, "-o", "json").stdout)
    assert (told["client"], told["servers"]) == (client_version(), {})
    assert "nothing listens" in told["error"]


def test_the_option_asks_nobody(command: Command, server: ScriptedServer) -> None:
    assert command("--version").stdout == f"{OURS}\n"
    assert server.requests == []
