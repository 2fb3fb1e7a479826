"""Decides which Waybill to talk to, and with which API key. Never talks to it.

It looks in this order: the URL as given, WAYBILL_URL, the context that WAYBILL_CONTEXT names, the
context in use, the local stack around the folder, port 8080 of this machine. The key: as given,
else WAYBILL_API_KEY, else none.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waybill.contexts import CONTEXT_VARIABLE, LOCAL, read_contexts
from waybill.errors import WaybillError

URL_VARIABLE = "WAYBILL_URL"
KEY_VARIABLE = "WAYBILL_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8080"
STATE_FILE = Path(".waybill") / "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL, and where it comes from, so that an error can name what to correct.

    `chosen`: somebody named it, so something should answer there. `guessed`: nothing names it, or
    a stack that does not run: another one may have its port by now.
    """

    url: str
    source: str
    chosen: bool = True
    guessed: bool = False


def find_target(url: str | None, environment: Mapping[str, str], folder: Path) -> Target:
    """Return the URL to use, by the order above."""
    if url is not None:
        return Target(url=url.rstrip("/"), source="as given")
    if environment.get(URL_VARIABLE):
        return Target(
            url=environment[URL_VARIABLE].rstrip("/"), source=f"from --url or {URL_VARIABLE}"
        )
    return _from_context(environment) or _around(folder)


def _from_context(environment: Mapping[str, str]) -> Target | None:
    named = environment.get(CONTEXT_VARIABLE)
    if named == LOCAL:
        return None  # whatever the file says
    contexts = read_contexts(environment)
    name = named or contexts.used
    source = f"by --context or {CONTEXT_VARIABLE}" if named else "in use"
    url = contexts.url_of(name, source)
    return None if url is None else Target(url=url, source=f"context {name}, {source}")


def _around(folder: Path) -> Target:
    state_file = find_state_file(folder)
    if state_file is not None:
        state = _read(state_file)
        return Target(
            url=_url_in(state, state_file),
            source=f"from {state_file}",
            chosen=False,
            guessed=_is_over(state),
        )
    return Target(
        url=DEFAULT_URL,
        source=f"the default: {URL_VARIABLE} is not set, no {STATE_FILE} here or above",
        chosen=False,
        guessed=True,
    )


def find_api_key(api_key: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the key to use: as given, else from the environment. Errors never show it."""
    key, source = api_key, "api_key"
    if key is None:
        key, source = environment.get(KEY_VARIABLE) or None, KEY_VARIABLE
    if key is not None and not (key.isascii() and key.isprintable() and key and " " not in key):
        raise WaybillError(f"{source} is no API key: it is empty, or has a space or a line break")
    return key


def find_state_file(folder: Path) -> Path | None:
    """Return the nearest `.waybill/state.json`, from the folder upwards."""
    for place in (folder, *folder.parents):
        if (place / STATE_FILE).is_file():
            return place / STATE_FILE
    return None


def _read(state_file: Path) -> dict[str, Any]:
    try:
        state = json.loads(state_file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _bad_state(state_file, error) from error
    return state if isinstance(state, dict) else {}


def _url_in(state: Mapping[str, Any], state_file: Path) -> str:
    try:
        return f"http://127.0.0.1:{int(state['ports']['gateway'])}"
    except (ValueError, KeyError, TypeError) as error:
        raise _bad_state(state_file, error) from error


def _bad_state(state_file: Path, error: Exception) -> WaybillError:
    return WaybillError(
        f"{state_file} names no gateway port ({type(error).__name__}): "
        f"run `waybill down` and `waybill up`, or set {URL_VARIABLE}"
    )


def _is_over(state: Mapping[str, Any]) -> bool:
    """Return True if the stack was stopped, or its supervisor does not run any more."""
    pid = state.get("supervisor_pid")
    if state.get("phase") == "stopped":
        return True
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)  # asks only
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # somebody else's
    return False
