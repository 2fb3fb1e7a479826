"""The bar of `waybill send`: on a terminal, after a while, and nowhere else."""

import os
import pty
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest

from waybill.cli.sending import bar as module
from waybill.cli.sending.bar import Bar

FAR_S = 60.0
DEADLINE_S = 120.0


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, TextIO]]:
    """Where to read what a terminal shows, and the terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    reading, writing = pty.openpty()
    with open(writing, "w") as stream:
        yield reading, stream
    os.close(reading)


@contextmanager
def stderr_is(stream: TextIO, delay_s: float) -> Iterator[None]:
    """In the test itself: pytest puts its own stream there after the fixtures."""
    with pytest.MonkeyPatch.context() as swapped:
        swapped.setattr(sys, "stderr", stream)
        swapped.setattr(module, "DELAY_S", delay_s)
        yield


def read_until(reading: int, wanted: str) -> str:
    text = ""
    while wanted not in text:
        assert select.select([reading], [], [], DEADLINE_S)[0], f"it shows only {text!r}"
        text += os.read(reading, 4096).decode(errors="replace")
    return text


def test_it_shows_how_much_was_sent_once_it_has_taken_a_while(screen: tuple[int, TextIO]) -> None:
    reading, stream = screen
    with stderr_is(stream, 0.01), Bar(2_000_000, wanted=True) as bar:
        bar.show(500_000)
        assert "sending" in read_until(reading, "0.5/2.0 MB")
        bar.show(1_000_000)
        read_until(reading, "1.0/2.0 MB")
        bar.show(1_500_000)
        read_until(reading, "B/s")


@pytest.mark.parametrize(("delay_s", "wanted"), [(FAR_S, True), (0.0, False)])
def test_what_is_quick_or_is_for_a_program_shows_nothing(
    screen: tuple[int, TextIO], *, delay_s: float, wanted: bool
) -> None:
    reading, stream = screen
    with stderr_is(stream, delay_s), Bar(2_000_000, wanted=wanted) as bar:
        bar.show(500_000)
    stream.write("<end>")
    stream.flush()
    assert read_until(reading, "<end>") == "<end>"


def test_where_stderr_is_no_terminal_it_shows_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DELAY_S", 0.0)
    with Bar(None, wanted=True) as bar:
        bar.show(1)
    assert capsys.readouterr().err == ""
