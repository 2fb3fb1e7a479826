"""`waybill keys`: a key is printed once, its hash is kept, and it is good until it is revoked."""

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from waybill.cli.main import app
from waybill_shared.access.api_keys import read_keys
from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.routes import Scope
from waybill_shared.process.clock import SystemClock

FILE = Path("keys") / "api_keys.json"


def waybill(*arguments: str, file: Path | None = FILE) -> Result:
    environment = {"WAYBILL_API_KEYS_FILE": str(file)} if file else {}
    return CliRunner(env=environment).invoke(app, ["keys", *arguments])


def allowed(key: str, scope: Scope) -> bool:
    try:
        KeysInForce(FILE, SystemClock()).require(f"Bearer {key}", scope)
    except Refusal:
        return False
    return True


def test_new_key_is_printed_alone_and_services_take_it() -> None:
    result = waybill("new", "--scope", "write", "--scope", "read", "--env", "prod")
    assert result.exit_code == 0
    key = result.stdout.removesuffix("\n")
    assert key.startswith("wb_prod_")
    assert "not shown again" in result.stderr
    assert allowed(key, Scope.WRITE)
    assert allowed(key, Scope.READ)
    assert not allowed(key, Scope.ADMIN)
    assert stat.S_IMODE(FILE.stat().st_mode) == 0o600


def test_list_shows_what_a_key_may_do_and_never_its_hash() -> None:
    waybill("new", "--scope", "admin", "--name", "ci", "--days", "30")
    waybill("new", "--scope", "read")
    table = waybill("list").stdout
    first, second = read_keys(FILE).keys
    assert [line.split()[0] for line in table.splitlines()] == ["ID", first.id, second.id]
    assert "never" in table
    shown = json.loads(waybill("list", "-o", "json").stdout)
    assert [key["scopes"] for key in shown] == [["admin"], ["read"]]
    assert first.sha256 not in table + json.dumps(shown)


def test_revoked_key_is_refused() -> None:
    key = waybill("new", "--scope", "read").stdout.strip()
    key_id = key.split("_")[2]
    assert waybill("revoke", key_id).exit_code == 0
    assert not allowed(key, Scope.READ)
    again = waybill("revoke", key_id)
    assert again.exit_code == 1
    assert f"has no key {key_id}: `waybill keys list`" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["new", "--scope", "all"], "'all' is not one of 'read', 'write', 'admin'"),
        (["new"], "Missing option '--scope'"),
        (["new", "--scope", "read", "--env", "a_b"], "'a_b' is not 1 to 16 of a-z and 0-9"),
        (["new", "--scope", "read", "--days", "0"], "--days"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], says: str) -> None:
    result = waybill(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr


def test_missing_file_is_named_with_what_makes_one() -> None:
    assert "WAYBILL_API_KEYS_FILE" in waybill("list", file=None).stderr
    result = waybill("list")
    assert result.exit_code == 1
    assert str(FILE) in result.stderr
    assert "`waybill keys new` makes one" in result.stderr
