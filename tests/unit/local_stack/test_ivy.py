"""What Ivy is asked for."""

from pathlib import Path

import pytest

from local_stack import ivy
from local_stack.errors import StackError
from local_stack.java import Java


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


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("Host repository.example not found. url=https://repository.example/a", "the network"),
        (
            "Server access error at url http://127.0.0.1:9/a (java.net.ConnectException: no)",
            "the addresses in the settings file",
        ),
        ("java.text.ParseException: failed to load settings from file:/m.xml: no end", "correct"),
        ("error (PKIX path building failed: unable to find valid certification)", "SSL_CERT_FILE"),
    ],
)
def test_failed_download_says_what_ivy_said_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, fix: str
) -> None:
    script = tmp_path / "java"
    script.write_text(f"#!/bin/sh\necho '\t{said}'\necho '\t\t:: a#b;1: not found'\nexit 1\n")
    script.chmod(0o700)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    java = Java(path=script, version="17", bundled=False)
    run = ivy.Run(java=java, cache=tmp_path, work=tmp_path, transitive=False)
    with pytest.raises(StackError) as raised:
        list(ivy.retrieve(["org.example:one:1.0"], run))
    assert raised.value.why == said
    assert fix in raised.value.fix
