"""Decides which Waybill to talk to: WAYBILL_URL, else the local stack around the folder, else 8080.

Never talks to it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from waybill.errors import WaybillError

URL_VARIABLE = "WAYBILL_URL"
DEFAULT_URL = "http://127.0.0.1:8080"
STATE_FILE = Path(".waybill") / "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL, and where it comes from, so that an error can name what to correct."""

    url: str
    source: str


def find_target(url: str | None, environment: Mapping[str, str], folder: Path) -> Target:
    """The URL to use: as given, else from the environment, a stack's state file, the default."""
    if url is not None:
        return Target(url=url.rstrip("/"), source="as given")
    if environment.get(URL_VARIABLE):
        return Target(url=environment[URL_VARIABLE].rstrip("/"), source=f"from {URL_VARIABLE}")
    state_file = find_state_file(folder)
    if state_file is not None:
        return Target(url=_url_in(state_file), source=f"from {state_file}")
    return Target(
        url=DEFAULT_URL,
        source=f"the default: {URL_VARIABLE} is not set, no {STATE_FILE} here or above",
    )


def find_state_file(folder: Path) -> Path | None:
    """The nearest `.waybill/state.json`, from the folder upwards."""
    for place in (folder, *folder.parents):
        if (place / STATE_FILE).is_file():
            return place / STATE_FILE
    return None


def _url_in(state_file: Path) -> str:
    try:
        state = json.loads(state_file.read_text(encoding="utf-8"))
        return f"http://127.0.0.1:{int(state['ports']['gateway'])}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WaybillError(
            f"{state_file} names no gateway port ({type(error).__name__}): "
            f"run `waybill down` and `waybill up`, or set {URL_VARIABLE}"
        ) from error
