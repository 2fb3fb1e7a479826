"""Waybills by name, in a file of the user's: which there are, and which one is in use.

The file has addresses only, never a secret. Never talks to any of them.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from waybill.errors import WaybillError

CONTEXT_VARIABLE = "WAYBILL_CONTEXT"
LOCAL = "local"
"""The name of the stack around the folder; no other context has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """Addresses by name; `used` is one of them, or LOCAL."""

    urls: Mapping[str, str] = field(default_factory=dict)
    used: str = LOCAL

    def url_of(self, name: str, source: str) -> str | None:
        """Return the URL of a context; None for LOCAL.

        Raises WaybillError if there is no such context. It names `source`, where the wrong name is
        from, and the names that exist.
        """
        if name == LOCAL:
            return None
        if name not in self.urls:
            known = ", ".join([LOCAL, *sorted(self.urls)])
            raise WaybillError(f"there is no context {name!r} ({source}); known contexts: {known}")
        return self.urls[name]

    def with_url(self, name: str, url: str) -> "Contexts":
        return replace(self, urls={**self.urls, name: url})

    def without(self, name: str) -> "Contexts":
        urls = {known: url for known, url in self.urls.items() if known != name}
        return Contexts(urls=urls, used=LOCAL if self.used == name else self.used)

    def use(self, name: str) -> "Contexts":
        return replace(self, used=name)


def contexts_file(environment: Mapping[str, str]) -> Path:
    root = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(root) / "waybill" / "contexts.json"


def read_contexts(environment: Mapping[str, str]) -> Contexts:
    """Return what the file says; nothing but LOCAL if there is no file."""
    path = contexts_file(environment)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        urls = {str(name): str(url) for name, url in raw["contexts"].items()}
        return Contexts(urls=urls, used=str(raw["used"]))
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WaybillError(
            f"{path} cannot be read ({type(error).__name__}: {error}): mend it, or delete it"
        ) from error


def write_contexts(contexts: Contexts, environment: Mapping[str, str]) -> None:
    """Replace the file in one step."""
    path = contexts_file(environment)
    text = json.dumps({"used": contexts.used, "contexts": dict(contexts.urls)}, indent=2)
    partial = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise WaybillError(f"{path} cannot be written: {error.strerror}") from error
