"""API keys: their form, what the file keeps of them, and which requests they let pass."""

import json
import re
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from waybill_shared.access.api_keys import add_key, read_keys, revoke_key
from waybill_shared.access.authentication import DEFAULT_TENANT, KeysInForce
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import Scope

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
WRITE = frozenset({Scope.WRITE})


class TurnedClock:
    def __init__(self) -> None:
        self.now = NOW

    def now_ms(self) -> int:
        return int(self.now.timestamp() * 1000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "api_keys.json"


def make(
    file: Path, scopes: frozenset[Scope] = WRITE, life: timedelta | None = None
) -> tuple[str, str]:
    """The key and its id."""
    text, kept = add_key(file, scopes, env="test", now=NOW, life=life)
    return text, kept.id


def in_force(file: Path, clock: TurnedClock | None = None) -> KeysInForce:
    return KeysInForce(file, clock or TurnedClock(), look_interval_s=0)


def refusal(keys: KeysInForce, header: str, scope: Scope = Scope.WRITE) -> Refusal:
    with pytest.raises(Refusal) as raised:
        keys.require(header, scope)
    return raised.value


def test_key_has_its_form_and_only_its_hash_is_kept(file: Path) -> None:
    text, key_id = make(file)
    assert re.fullmatch(rf"wb_test_{key_id}_[0-9a-f]{{64}}", text)
    assert text.rpartition("_")[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_file_open_to_others_is_closed_by_the_next_change(file: Path) -> None:
    make(file)
    file.chmod(0o644)
    make(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_keys_made_at_the_same_time_are_all_kept(file: Path) -> None:
    makers = [threading.Thread(target=make, args=(file,)) for _ in range(8)]
    for each in makers:
        each.start()
    for each in makers:
        each.join()
    assert len(read_keys(file).keys) == 8


def test_key_passes_with_its_scope(file: Path) -> None:
    text, key_id = make(file)
    caller = in_force(file).require(f"Bearer {text}", Scope.WRITE)
    assert caller == Caller(tenant=DEFAULT_TENANT, scopes=WRITE, key_id=key_id)
    assert caller.actor == key_id
    assert in_force(file).require(f"bearer  {text} ", Scope.WRITE) == caller


@pytest.mark.parametrize("scope", [Scope.READ, Scope.ADMIN])
def test_scope_that_a_key_lacks_is_named(file: Path, scope: Scope) -> None:
    text, key_id = make(file)
    refused = refusal(in_force(file), f"Bearer {text}", scope)
    assert (refused.slug, refused.slug.status) == (Slug.SCOPE_MISSING, 403)
    assert str(refused) == f"this needs scope {scope}; API key {key_id} has write"
    assert refused.members == {"scope": scope, "scopes": ["write"]}


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic d2I6", "wb_test_1_2"])
def test_request_without_a_key_is_told_how_to_send_one(file: Path, header: str) -> None:
    make(file)
    refused = refusal(in_force(file), header)
    assert (refused.slug, refused.slug.status) == (Slug.KEY_MISSING, 401)
    assert "Authorization: Bearer" in str(refused.members["hint"])


def test_whatever_is_not_the_key_to_the_last_letter_is_refused(file: Path) -> None:
    text, key_id = make(file)
    _, other_id = make(file)
    last = "0" if text[-1] != "0" else "1"
    near = [
        text[:-1] + last,
        text + "0",
        text[:-1],
        text.upper(),
        text.replace("test", "prod"),
        text.replace(key_id, other_id),
        f"{text} {text}",
        "ü" * len(text),
    ]
    keys = in_force(file)
    for wrong in near:
        assert refusal(keys, f"Bearer {wrong}").slug == "key_refused", wrong


def test_key_is_good_until_it_expires(file: Path) -> None:
    text, key_id = make(file, life=timedelta(days=1))
    clock = TurnedClock()
    keys = in_force(file, clock)
    clock.now += timedelta(days=1, seconds=-1)
    keys.require(f"Bearer {text}", Scope.WRITE)
    clock.now += timedelta(seconds=1)
    refused = refusal(keys, f"Bearer {text}")
    assert (refused.slug, refused.slug.status) == (Slug.KEY_EXPIRED, 401)
    assert key_id in str(refused)


def test_changes_of_the_file_take_effect_without_a_restart(file: Path) -> None:
    first, first_id = make(file)
    keys = in_force(file)
    second, _ = make(file)
    keys.require(f"Bearer {second}", Scope.WRITE)
    assert revoke_key(file, first_id)
    assert refusal(keys, f"Bearer {first}").slug == "key_refused"
    assert not revoke_key(file, first_id)


@pytest.mark.parametrize("broken", [None, "{", '{"keys": [{"id": "x"}]}'])
def test_file_that_breaks_leaves_the_last_good_keys_and_is_told(
    file: Path, broken: str | None
) -> None:
    text, _ = make(file)
    keys = in_force(file)
    assert keys.check() is None
    good = file.read_text()
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    keys.require(f"Bearer {text}", Scope.WRITE)
    assert str(file) in str(keys.check())
    file.write_text(good)
    assert keys.check() is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        ("[]", "should be an object"),
        ('{"keys": [{"id": "x"}]}', "keys.0.env: Field required"),
        ('{"keys": [], "mode": "off"}', "mode: Extra inputs"),
    ],
)
def test_file_that_cannot_be_read_is_named_with_the_place(
    file: Path, content: str | None, reason: str
) -> None:
    file.parent.mkdir()
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=re.escape(reason)) as raised:
        in_force(file)
    assert str(file) in str(raised.value)


def test_scopes_that_no_version_knows_are_refused(file: Path) -> None:
    make(file)
    raw = json.loads(file.read_text())
    raw["keys"][0]["scopes"] = ["everything"]
    file.write_text(json.dumps(raw))
    with pytest.raises(UserError, match=r"keys\.0\.scopes"):
        read_keys(file)
