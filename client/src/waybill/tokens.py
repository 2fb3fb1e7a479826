"""The text of a token, which may be printed, stored and passed on."""

import re
from typing import Protocol

from waybill.errors import Unusable

TOKEN = re.compile(r"wb\d+\.[\w-]+", re.ASCII)  # of a later version too
FORM = "a token is wb1. and then only letters, digits, - and _"


class HoldsToken(Protocol):
    """A Receipt, an IssuedToken, or whatever else has a token."""

    @property
    def token(self) -> str: ...


AnyToken = str | HoldsToken


def text_of(token: AnyToken, name: str = "the token") -> str:
    """Return the token as plain text, without the white space that a file or a pipe may add.

    Unusable: it cannot be a token of any Waybill. Only Waybill knows whether it is one of its own.
    """
    given = token if isinstance(token, str) else getattr(token, "token", token)
    if not isinstance(given, str):
        raise Unusable(f"{name} is of type {type(given).__qualname__}: {FORM}")
    text = str(given).strip()
    if not text:
        raise Unusable(f"{name} is empty: {FORM}")
    if not TOKEN.fullmatch(text):
        raise Unusable(f"{name} {_flaw(text)}: {FORM}")
    return text


def _flaw(text: str) -> str:
    begin = TOKEN.match(text)
    if begin is None:
        return f"begins with {text[:12]!r}"
    return f"has {text[begin.end()]!r} as character {begin.end() + 1}"
