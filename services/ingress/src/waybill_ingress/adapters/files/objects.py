"""Objects of S3, and of stores with the same API, through a connection."""

import re
import ssl
from collections.abc import Mapping
from functools import cache
from html import unescape
from typing import Final
from urllib.parse import unquote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from waybill_ingress.adapters.files.patience import FetchPatience
from waybill_ingress.adapters.files.web import Web, WebFile
from waybill_ingress.app.connector_ports import FetchFailed
from waybill_shared.connections import Connections
from waybill_shared.contract.addresses import AllowedAddresses
from waybill_shared.object_stores import S3Connection

SIGNED: Final = ("Host", "Range")
"""Headers that change the answer. Others are not signed, because proxies change them."""
REASON: Final = re.compile(r"<(Code|Message)>([^<]{1,300})")


class ObjectSignature:
    """Signature Version 4, as `botocore` makes it. Fulfils `Signature`."""

    def __init__(self, credentials: Credentials, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def headers(self, url: str, given: Mapping[str, str]) -> Mapping[str, str]:
        signed = {name: given[name] for name in SIGNED if name in given}
        frozen = self._credentials.get_frozen_credentials()  # all parts of one moment
        request = AWSRequest(method="GET", url=url, headers=signed)
        try:
            S3SigV4Auth(frozen, "s3", self._region).add_auth(request)
        except BotoCoreError as error:
            raise FetchFailed(f"the request cannot be signed: {error}") from error
        return {**given, **dict(request.headers.items())}

    def reason(self, body: bytes) -> str:
        found = REASON.findall(body.decode("utf-8", "replace"))
        return ": ".join(unescape(text) for _, text in found[:2])


def object_place(url: str, name: str, known: Connections, patience: FetchPatience) -> WebFile:
    """Return the file of `s3://BUCKET/KEY`. Raises UserError if the connection cannot be used."""
    parts = urlsplit(url)
    to = known.find(name, S3Connection)
    address = to.address(parts.netloc, unquote(parts.path).removeprefix("/"))
    return WebFile(address, web_of(name, to), patience, signature_of(name, to))


def web_of(name: str, to: S3Connection) -> Web:
    try:
        tls = ssl.create_default_context(cafile=to.root_certificate)
    except OSError as error:
        reason = f"{to.root_certificate}: {error.strerror or error}"
        raise FetchFailed(f"connection {name}: {reason}") from error
    return Web(allowed=AllowedAddresses(), tls=tls)


def signature_of(name: str, to: S3Connection) -> ObjectSignature:
    if to.access_key is not None and to.secret_key is not None:
        credentials = Credentials(to.access_key, to.secret_key.read(name))
        return ObjectSignature(credentials, to.region)
    found = _of_this_machine()
    if found is None:
        raise FetchFailed(
            f"connection {name}: neither has it an accessKey, nor has this machine credentials"
        )
    return ObjectSignature(found, to.region)


@cache
def _machine() -> Session:
    """Return the one session: it keeps credentials, and renews them before they expire."""
    return Session()


def _of_this_machine() -> Credentials | None:
    try:
        return _machine().get_credentials()
    except BotoCoreError as error:
        raise FetchFailed(f"credentials of this machine: {error}") from error
