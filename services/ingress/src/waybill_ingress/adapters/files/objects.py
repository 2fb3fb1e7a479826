"""Objects of S3 and of stores that answer as it does, through a connection."""

import re
import ssl
from collections.abc import Mapping
from functools import cache
from html import unescape
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import quote, unquote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session
from pydantic import AfterValidator, Field, model_validator

from waybill_ingress.adapters.files.patience import FetchPatience
from waybill_ingress.adapters.files.web import Web, WebFile
from waybill_ingress.app.connector_ports import FetchFailed
from waybill_shared.connections import Connections, ConnectionSettings, Secret
from waybill_shared.contract.addresses import AllowedAddresses

SIGNED: Final = ("Host", "Range")
"""Of the headers that have a meaning for the answer; proxies change others."""
REASON: Final = re.compile(r"<(Code|Message)>([^<]{1,300})")


def _is_endpoint(text: str) -> str:
    parts = urlsplit(text)
    plain = parts.username is None and not (parts.query or parts.fragment)
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or parts.port == 0:
        raise ValueError("write https://HOST or https://HOST:PORT")
    if parts.path not in ("", "/"):
        raise ValueError("write https://HOST or https://HOST:PORT, without a path")
    return f"{parts.scheme}://{parts.netloc}"


class S3Connection(ConnectionSettings):
    kind: Literal["s3"]
    endpoint: Annotated[str, AfterValidator(_is_endpoint)] | None = None
    """None: that of AWS in the region."""
    region: str = Field(default="us-east-1", pattern=r"^[a-z0-9-]{1,63}$")
    access_key: str | None = Field(default=None, alias="accessKey", min_length=1)
    """None: what AWS's own tools find on this machine."""
    secret_key: Secret | None = Field(default=None, alias="secretKey")
    root_certificate: Path | None = Field(default=None, alias="rootCertificate")

    @model_validator(mode="after")
    def _has_both_keys(self) -> "S3Connection":
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("accessKey and secretKey stand together, or neither does")
        return self

    @property
    def place(self) -> str:
        return self.endpoint or f"https://s3.{self.region}.amazonaws.com"

    def address(self, bucket: str, key: str) -> str:
        """A host of the bucket's own where AWS wants it, if a certificate can name that host."""
        path = quote(key, safe="/~")
        if self.endpoint is None and "." not in bucket:
            return f"https://{bucket}.s3.{self.region}.amazonaws.com/{path}"
        return f"{self.place}/{bucket}/{path}"


class ObjectSignature:
    """Signature Version 4, as `botocore` makes it. Fulfils `Signature`."""

    def __init__(self, credentials: Credentials, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def headers(self, url: str, given: Mapping[str, str]) -> Mapping[str, str]:
        signed = {name: given[name] for name in SIGNED if name in given}
        frozen = self._credentials.get_frozen_credentials()  # of one moment
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
    """Of `s3://BUCKET/KEY`. UserError if the connection cannot be used."""
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
    """One, because it keeps credentials, and takes new ones before they end."""
    return Session()


def _of_this_machine() -> Credentials | None:
    try:
        return _machine().get_credentials()
    except BotoCoreError as error:
        raise FetchFailed(f"credentials of this machine: {error}") from error
