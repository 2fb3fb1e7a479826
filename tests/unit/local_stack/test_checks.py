"""What `waybill doctor` finds on this machine: each fault is named with what to do about it."""

import hashlib
import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from waybill_local import checks, jars
from waybill_local.checks import CheckResult, Verdict
from waybill_local.state import StackState, save


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def found(check: CheckResult) -> tuple[Verdict, bool]:
    """The verdict, and whether it says what to do: only where it is not ok."""
    return check.verdict, bool(check.fix)


OK, WARN, WRONG = (Verdict.OK, False), (Verdict.WARN, True), (Verdict.WRONG, True)


def test_a_sound_machine_has_nothing_wrong(tmp_path: Path) -> None:
    told = list(checks.check_machine(tmp_path))
    assert [check for check in told if check.verdict is Verdict.WRONG] == []
    assert {"python", "java", "jars", "disk", "memory", "state folder"} <= {c.name for c in told}


def test_old_java_is_named_with_the_one_that_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "java"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\"' >&2\n")
    script.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check = checks.check_java()
    assert found(check) == WARN
    assert "is Java 11.0.22, older than 17" in check.text


def test_jars_are_missing_or_changed_or_good(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = jars.Jar(coordinate="org.example:one:1.0", sha256=hashlib.sha256(b"one").hexdigest())
    monkeypatch.setattr(jars, "NEEDED", ("kafka",))
    monkeypatch.setattr(jars, "jar_set", lambda name: jars.JarSet(name=name, jars=(one,)))
    assert found(checks.check_jars()) == WARN
    folder = jars.jar_set("kafka").folder
    folder.mkdir(parents=True)
    (folder / one.file_name).write_bytes(b"other")
    check = checks.check_jars()
    assert found(check) == WRONG
    assert "org.example:one:1.0 is not the one that was locked" in check.text
    (folder / one.file_name).write_bytes(b"one")
    assert found(checks.check_jars()) == OK


def test_mirror_and_certificates_must_be_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: bytes
) -> None:
    settings, bundle = tmp_path / "ivy.xml", tmp_path / "ca.pem"
    monkeypatch.setenv("WAYBILL_IVY_SETTINGS", str(settings))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert found(checks.check_mirror()) == WRONG
    assert found(checks.check_certificates()) == WRONG
    settings.write_text("<ivysettings>")
    assert found(checks.check_mirror()) == WRONG
    settings.write_text("<ivysettings/>")
    bundle.write_bytes(certificate)
    assert found(checks.check_mirror()) == OK
    assert checks.check_certificates().text == f"1 in {bundle}, from SSL_CERT_FILE"


def test_a_full_disk_and_a_missing_temp_folder_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(checks.check_disk(tmp_path)) == OK
    monkeypatch.setattr(checks, "free_bytes", lambda _: 1_000_000)
    check = checks.check_disk(tmp_path)
    assert found(check) == WRONG
    assert "0.5 GB are needed" in check.text
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    assert found(checks.check_temp_folder()) == WRONG


def test_a_state_folder_is_none_yet_damaged_foreign_or_of_another_version(
    tmp_path: Path, state: StackState, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new").mkdir()
    assert found(checks.check_state_folder(tmp_path / "new" / "er")) == OK
    (tmp_path / "new" / ".waybill").touch()
    assert found(checks.check_state_folder(tmp_path / "new")) == WRONG
    save(state)
    assert found(checks.check_state_folder(tmp_path)) == OK
    save(replace(state, version="0.0.7"))
    assert "last used by 0.0.7" in checks.check_state_folder(tmp_path).text
    (state.folder / "state.json").write_text("{}")
    assert found(checks.check_state_folder(tmp_path)) == WARN
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert found(checks.check_state_folder(tmp_path)) == WRONG


def test_a_stack_runs_or_was_stopped_or_failed_or_left_something(
    tmp_path: Path, state: StackState
) -> None:
    assert found(checks.check_stack(tmp_path)) == OK
    save(state)
    assert checks.check_stack(tmp_path).text.startswith("ready since")
    dead = replace(state, supervisor_began=1.0, processes=())
    save(dead)
    assert found(checks.check_stack(tmp_path)) == OK
    save(replace(dead, failure="kafka ended\n  why: the disk is full\n  fix: make room"))
    check = checks.check_stack(tmp_path)
    assert (found(check), check.fix) == (WARN, "make room")
    save(replace(dead, processes=state.processes))
    check = checks.check_stack(tmp_path)
    assert (found(check), "kafka" in check.text) == (WRONG, True)


def test_who_has_a_port_is_named(tmp_path: Path, state: StackState, taken: int) -> None:
    save(replace(state, supervisor_began=1.0, ports={**state.ports, "gateway": taken}))
    told = {check.name: check for check in checks.check_ports(tmp_path)}
    assert found(told[f"port {taken}"]) == WARN
    assert f"(pid {psutil.Process().pid})" in told[f"port {taken}"].text
    save(state)
    assert {check.verdict for check in checks.check_ports(tmp_path)} == {Verdict.OK}
