"""How objects are asked for: their addresses, and the signature, which AWS has published one of."""

from datetime import UTC, datetime

import botocore.auth
import pytest
from botocore.credentials import Credentials
from pydantic import ValidationError

from waybill_ingress.adapters.files.objects import ObjectSignature
from waybill_shared.object_stores import S3Connection

EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


def test_the_published_example_is_signed_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other headers than these two are sent, and not signed: proxies may change them."""
    then = datetime(2013, 5, 24, tzinfo=UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: then)
    sent = ObjectSignature(EXAMPLE, "us-east-1").headers(
        "https://examplebucket.s3.amazonaws.com/test.txt",
        {
            "Host": "examplebucket.s3.amazonaws.com",
            "Range": "bytes=0-9",
            "User-Agent": "waybill",
            "Accept-Encoding": "identity",
        },
    )
    assert sent["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        " SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        " Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )
    assert (sent["Accept-Encoding"], sent["Range"]) == ("identity", "bytes=0-9")


@pytest.mark.parametrize(
    ("endpoint", "bucket", "address"),
    [
        (None, "prices", "https://prices.s3.eu-west-1.amazonaws.com/a%20b/c"),
        (None, "my.prices", "https://s3.eu-west-1.amazonaws.com/my.prices/a%20b/c"),
        ("https://objects.example:9000/", "prices", "https://objects.example:9000/prices/a%20b/c"),
    ],
)
def test_an_object_has_an_address(endpoint: str | None, bucket: str, address: str) -> None:
    to = S3Connection(kind="s3", region="eu-west-1", endpoint=endpoint)
    assert to.address(bucket, "a b/c") == address


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "objects.example"},
        {"endpoint": "ftp://objects.example"},
        {"endpoint": "https://me:secret@objects.example"},
        {"endpoint": "https://objects.example/path"},
        {"endpoint": "https://objects.example:0"},
        {"accessKey": "AKIA"},
        {"secretKey": {"env": "WAYBILL_SECRET"}},
        {"region": "eu west"},
    ],
)
def test_a_wrong_connection_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        S3Connection.model_validate({"kind": "s3", **wrong})


def test_what_a_store_says_is_shown() -> None:
    body = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>No &lt;way&gt;</Message>"
    signature = ObjectSignature(EXAMPLE, "us-east-1")
    assert signature.reason(body) == "AccessDenied: No <way>"
    assert signature.reason(b"\xff not XML") == ""
