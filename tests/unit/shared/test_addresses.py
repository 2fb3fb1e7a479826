"""Which addresses may be fetched from, however they are written."""

import pytest

from waybill_shared.contract.addresses import allowed

PRIVATE = (
    "127.0.0.1",
    "127.255.255.254",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.0.8",
    "192.88.99.1",
    "168.63.129.16",
    "fec0::1",
    "3fff::1",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
)
PUBLIC = ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34")


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not allowed("").address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_taken(address: str) -> None:
    assert allowed("").address(address)


def test_networks_and_hosts_may_be_allowed() -> None:
    some = allowed("10.1.0.0/16, Files.Internal,::1")
    assert some.address("10.1.2.3")
    assert some.address("::ffff:10.1.2.3")
    assert some.address("::1")
    assert not some.address("10.2.2.3")
    assert some.host("files.internal.")
    assert not some.host("other.files.internal")


@pytest.mark.parametrize("word", ["10.1.0.1/16", "10.0.0.0/40", "a/b", "."])
def test_what_is_neither_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        allowed(word)
