"""How a store of objects is reached that answers as S3 does: a connection of kind `s3`."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, Field, model_validator

from waybill_shared.connections import ConnectionSettings, Secret


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
        """Return the URL of an object.

        The host is the bucket's own where AWS wants it, if a certificate can name that host.
        """
        path = quote(key, safe="/~")
        if self.endpoint is None and "." not in bucket:
            return f"https://{bucket}.s3.{self.region}.amazonaws.com/{path}"
        return f"{self.place}/{bucket}/{path}"
