"""For receivers of webhooks: checks that a request is from Waybill, and reads its event.

Signatures are those of Standard Webhooks, so libraries of other languages check them, too.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from typing import Final

from waybill.errors import UnexpectedAnswer, Unusable, WaybillError
from waybill.fields import Fields
from waybill.watches import Event

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
AGE_S_MAX: Final = 300.0


class NotFromWaybill(WaybillError):
    """A request without a signature by this secret, or not of this moment: answer it with 401."""


def new_secret() -> str:
    """Make a secret for `client.watch(…, webhook=…, secret=…)`; keep it where the receiver finds
    it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def verify(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str,
    *,
    age_s_max: float = AGE_S_MAX,
    now_s: float | None = None,
) -> Event:
    """Return the event in a request that has a right signature; else raise NotFromWaybill.

    `body` must be what was received, byte for byte. The same event may come more than once, with
    the same `id`.
    """
    sent = body.encode() if isinstance(body, str) else body
    found = {name.lower(): value for name, value in headers.items()}
    event_id, at = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    signatures = found.get("webhook-signature", "").split()
    if not (event_id and at and signatures):
        raise NotFromWaybill("webhook-id, webhook-timestamp or webhook-signature is missing")
    if not (at.isascii() and at.isdecimal()):
        raise NotFromWaybill("webhook-timestamp is no number of seconds")
    signed = b".".join((event_id.encode(), at.encode(), sent))
    digest = hmac.digest(_bytes_of(secret), signed, hashlib.sha256)
    wanted = b"v1," + base64.b64encode(digest)
    if not any(hmac.compare_digest(wanted, each.encode()) for each in signatures):
        raise NotFromWaybill("no signature is by this secret")
    age_s = (_now_s() if now_s is None else now_s) - int(at)
    if abs(age_s) > age_s_max:
        raise NotFromWaybill(f"it was signed {age_s:.0f} s ago, and {age_s_max:.0f} s is the most")
    try:
        return Event.read(Fields(json.loads(sent), "the event"), None)
    except (ValueError, UnexpectedAnswer) as error:
        raise NotFromWaybill(f"it is signed, and no event: {error}") from error


def _now_s() -> float:
    return time.time()  # noqa: TID251 - the client has nothing of the services


def _bytes_of(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise Unusable("the secret is not whsec_ and Base64") from None
