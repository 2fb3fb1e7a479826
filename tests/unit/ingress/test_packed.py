"""Packed bodies: what comes out is what went in, and never more than is allowed."""

import gzip
import os
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from unit.ingress.bodies import WholeBody
from waybill_ingress.core.bodies.packed import UnpackLimits, unpack
from waybill_shared.contract.errors import Refusal

LIMITS = UnpackLimits(bytes_max=50_000_000, ratio_max=200)
Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {"gzip": gzip.compress, "zstd": zstandard.compress, "identity": bytes}
PACKED = [("gzip", gzip.compress), ("zstd", zstandard.compress)]
MEMORY_BYTES_MAX = 16_000_000


def unpacked(
    body: bytes, encoding: str, limits: UnpackLimits = LIMITS, step: int = 65_536
) -> bytes:
    return b"".join(unpack(WholeBody(body, step).pieces(), encoding, limits))


@given(st.binary(max_size=2_000), st.sampled_from([*PACKERS]), st.integers(1, 500))
def test_what_goes_in_comes_out(data: bytes, encoding: str, step: int) -> None:
    assert unpacked(PACKERS[encoding](data), encoding, step=step) == data


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
def test_parts_one_behind_the_other_are_one_body(encoding: str, pack: Pack) -> None:
    """As tools leave them that append to a packed file."""
    noise, zeros = os.urandom(200_000), bytes(100_000)
    for step in (1, 100, 1_000_000):
        assert unpacked(pack(noise) + pack(zeros), encoding, step=step) == noise + zeros


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
@pytest.mark.parametrize("cut", [0, 3, 12, -1])
def test_a_body_that_is_cut_off_is_refused(encoding: str, pack: Pack, cut: int) -> None:
    packed = pack(b"some text, " * 1_000)
    with pytest.raises(Refusal, match="has no end") as refused:
        unpacked(packed[:cut], encoding)
    assert refused.value.slug == "body_not_packed"


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
@pytest.mark.parametrize("wrong", [b"no pack at all", b"{}"])
def test_a_body_that_is_not_packed_as_it_says_is_refused(
    encoding: str, pack: Pack, wrong: bytes
) -> None:
    for body in (wrong, pack(b"x") + wrong):
        with pytest.raises(Refusal) as refused:
            unpacked(body, encoding)
        assert refused.value.slug == "body_not_packed"


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
def test_many_empty_parts_are_refused(encoding: str, pack: Pack) -> None:
    with pytest.raises(Refusal, match="more than 10000 parts"):
        unpacked(pack(b"") * 10_001, encoding)


def test_pieces_have_one_size_however_they_come() -> None:
    data = os.urandom(150_000)
    for encoding, pack in PACKERS.items():
        for step in (1_000, 65_536, 1_000_000):
            pieces = [*unpack(WholeBody(pack(data), step).pieces(), encoding, LIMITS)]
            assert [len(piece) for piece in pieces] == [65_536, 65_536, 18_928]


def test_a_wrong_check_sum_is_seen() -> None:
    packed = bytearray(gzip.compress(b"some text"))
    packed[-6] ^= 1
    with pytest.raises(Refusal, match="incorrect data check"):
        unpacked(bytes(packed), "gzip")


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
def test_what_unpacks_to_too_much_is_refused_as_soon_as_it_is_known(
    encoding: str, pack: Pack
) -> None:
    """200 MB of zeros: 200 times the size, or the most that is taken, is far below."""
    bomb = _zeros(encoding)
    tracemalloc.start()
    try:
        with pytest.raises(Refusal) as refused:
            for _ in unpack(WholeBody(bomb, 65_536).pieces(), encoding, LIMITS):
                pass
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES_MAX
    finally:
        tracemalloc.stop()
    assert refused.value.slug == "body_too_large"


def test_little_may_be_packed_as_well_as_it_can_be() -> None:
    assert len(unpacked(gzip.compress(bytes(900_000)), "gzip")) == 900_000
    with pytest.raises(Refusal, match="more than 200 times its size"):
        unpacked(gzip.compress(bytes(1_100_000)), "gzip")


def test_a_body_that_is_not_packed_has_a_most_too() -> None:
    with pytest.raises(Refusal, match="larger than 10 bytes"):
        unpacked(bytes(11), "identity", UnpackLimits(bytes_max=10, ratio_max=1))


def _zeros(encoding: str) -> bytes:
    zeros, pieces = bytes(1_000_000), 200
    if encoding == "gzip":
        packer = zlib.compressobj(wbits=31)
        return b"".join(packer.compress(zeros) for _ in range(pieces)) + packer.flush()
    into = zstandard.ZstdCompressor().compressobj()
    return b"".join(into.compress(zeros) for _ in range(pieces)) + into.flush()
