"""Lets a person edit the record of a dead letter: in their editor, or in a file."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import typer

from waybill.cli import render
from waybill.cli.asking import has_terminal
from waybill.dead_letters import Edit
from waybill.errors import Invalid, Unusable
from waybill.fields import Fields

STDIN: Final = Path("-")
EDITOR: Final = "vi"  # where the environment names none


def refuse_unreplayable(letter: Fields) -> None:
    """Raise Unusable if the letter cannot be replayed: nobody is to edit it in vain."""
    reason = letter.text_or_none("not_replayable")
    if reason is not None:
        raise Unusable(f"dead letter {letter.text('id')} cannot be replayed: {reason}")


def edit_of_options(value: Path | None, key: str | None) -> Edit:
    """Return what the options say; empty if they say nothing."""
    edit = Edit()
    if value is not None:
        edit["value"] = sys.stdin.buffer.read() if value == STDIN else value.read_bytes()
    if key is not None:
        edit["key"] = key
    return edit


def edit_in_editor(letter: Fields, send: Callable[[Edit], None]) -> None:
    """Open the value in the editor of the person, and send what was saved. What does not fit the
    schema opens again, as it was saved. Raise Unusable if nothing was changed, or there is no
    editor to open it in.
    """
    original = letter.text_or_none("value")
    if original is None:
        what = "is no text" if letter.text_or_none("value_base64") else "is null"
        raise Unusable(f"its value {what}: give the new one by --value FILE")
    if not has_terminal():
        raise Unusable("there is no terminal to edit it on: give the new value by --value FILE")
    text = original
    while True:
        text = _as_ended(open_editor(text), original)
        if text == original:
            raise Unusable("nothing was changed: `waybill dlq replay` replays it as it is")
        try:
            return send({"value": text})
        except Invalid as refusal:
            render.failure(refusal)
            typer.confirm("Edit it again?", default=True, abort=True, err=True)


def open_editor(text: str) -> str:
    """Return what a person saves of the text. Raise Unusable if the editor does not run, or what is
    saved is no UTF-8.
    """
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or EDITOR)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        file.write_bytes(text.encode())
        try:
            subprocess.run([*command, str(file)], check=True)
            return file.read_bytes().decode()
        except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
            hint = "EDITOR names another one, and --value FILE needs none"
            raise Unusable(f"editor {command[0]!r}: {error}; {hint}") from error


def _as_ended(saved: str, original: str) -> str:
    """Return the text without the end of line that an editor adds."""
    return saved if original.endswith("\n") else saved.removesuffix("\n")
