"""Which names of a service its callers may use, where no API key says who they are.

A web page can let the name of its own site lead to this machine (DNS rebinding). The browser then
takes the service for that site: the page may read all answers, and `Origin` is equal to `Host`.
Only the name in `Host` shows it, so a name that is not known here gets no answer.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

LOCALHOST: Final = "localhost"
NAME: Final = re.compile(r"\[[0-9a-f:.]+\]|[\w.-]+", re.ASCII | re.IGNORECASE)
HEADER: Final = re.compile(rf"({NAME.pattern})(:\d*)?", NAME.flags)
HINT: Final = (
    "call it 127.0.0.1, localhost or [::1]; or set WAYBILL_ALLOWED_HOSTS to the names that it is"
    " called by; or use API keys"
)


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Names and addresses other than those of loopback, each in one spelling and at any port."""

    names: frozenset[str] = frozenset()

    def require(self, headers: Sequence[str]) -> None:
        """Raise Refusal unless the request has one header `Host`, and its name is allowed. A server
        that forwards may add what it likes in other headers: those are never believed."""
        name = _name_in(headers[0]) if len(headers) == 1 else None
        if name is None or not (is_loopback(name) or name in self.names):
            called = f"for host {', '.join(headers):.100}" if headers else "without a header Host"
            raise Refusal(Slug.HOST_REFUSED, f"there is no answer {called}", hint=HINT)


LOOPBACK_ONLY: Final = AllowedHosts()


def read_allowed_hosts(words: Iterable[str]) -> AllowedHosts:
    """Return these names; ValueError for what is no name."""
    found = set()
    for word in words:
        if NAME.fullmatch(word) is None or not (name := _name_in(word)):
            raise ValueError(
                f"{word!r:.100} is no host: write waybill.example, 192.0.2.1 or [2001:db8::1], with"
                " no scheme and no port; `*` is not accepted"
            )
        found.add(name)
    return AllowedHosts(frozenset(found))


def is_loopback(name: str) -> bool:
    """Return whether only this machine is called so."""
    try:
        return name == LOCALHOST or ip_address(name).is_loopback
    except ValueError:
        return False


def _name_in(header: str) -> str | None:
    """Return what `Host` names, without its port and in one spelling; None if it names nothing."""
    found = HEADER.fullmatch(header)
    if found is None:
        return None
    name = found[1].lower().removesuffix(".")
    try:
        return str(ip_address(name.strip("[]")))
    except ValueError:
        return None if name.startswith("[") else name
