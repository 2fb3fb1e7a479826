"""What Ivy is asked for."""

from pathlib import Path

import pytest

from waybill_local import ivy
from waybill_local.errors import StackError
from waybill_local.java import Java


def test_module_file_names_each_jar_alone() -> None:
    text = ivy.module_file(["org.example:one:1.0"], transitive=False)
    assert 'org="org.example" name="one" rev="1.0"' in text
    assert 'transitive="false"' in text


def test_coordinate_is_read_back_from_the_path() -> None:
    path = Path("jars") / "org.example" / "one_2.13" / "1.0.jar"
    assert ivy.coordinate_of(path) == "org.example:one_2.13:1.0"


def test_missing_settings_of_a_site_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(ivy.SITE_SETTINGS, str(tmp_path / "mirror.xml"))
    java = Java(path=tmp_path / "java", version="17", bundled=False)
    run = ivy.Run(java=java, cache=tmp_path, work=tmp_path, transitive=False)
    with pytest.raises(StackError, match=r"mirror\.xml"):
        list(ivy.retrieve(["org.example:one:1.0"], run))


AWAY = "Server access error at url http://127.0.0.1:9/a (java.net.ConnectException: no)"
NOTHING = "nothing, or nothing without a login, at http://127.0.0.1:9/a"


@pytest.mark.parametrize(
    ("said", "named", "why", "fix"),
    [
        ("Host a not found. url=https://a/b", False, None, "check the network; name a proxy"),
        (AWAY, False, None, "Ivy settings in WAYBILL_IVY_SETTINGS"),
        (AWAY, True, None, "the addresses and credentials in the settings file"),
        ("http://127.0.0.1:9/a", True, NOTHING, "credentials in the settings file"),
        ("failed to load settings from file:/m.xml: no end", True, None, "correct the settings"),
        ("error (PKIX path building failed: no path)", True, None, "SSL_CERT_FILE"),
    ],
)
def test_failed_download_says_what_ivy_said_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    said: str,
    named: bool,
    why: str | None,
    fix: str,
) -> None:
    script = tmp_path / "java"
    script.write_text(f"#!/bin/sh\necho '\t{said}'\necho '\t\t:: a#b;1: not found'\nexit 1\n")
    script.chmod(0o700)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if named:
        (tmp_path / "mirror.xml").touch()
        monkeypatch.setenv(ivy.SITE_SETTINGS, str(tmp_path / "mirror.xml"))
    java = Java(path=script, version="17", bundled=False)
    run = ivy.Run(java=java, cache=tmp_path, work=tmp_path, transitive=False)
    with pytest.raises(StackError) as raised:
        list(ivy.retrieve(["org.example:one:1.0"], run))
    assert raised.value.why == (why or said)
    assert fix in raised.value.fix
