"""Unpacks bodies in steps of limited size, and stops when a body unpacks to too much. Pure."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import zstandard

from waybill_ingress.core.rows import WHOLE_BYTES_MAX, row_refusal
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

GZIP: Final = 31  # for zlib: with the header of gzip, and its checksum
STEP_BYTES: Final = 65_536
ZSTD_STEP_BYTES: Final = 64  # a block of four bytes may become 128 kB
ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
FREE_BYTES: Final = 1_000_000  # that much is unpacked at any ratio
PARTS_MAX: Final = 10_000  # members of gzip or frames of zstd, one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackLimits:
    """Limits of unpacking. `ratio_max`: the unpacked size divided by the packed size."""

    bytes_max: int
    ratio_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Limits of a body. `bytes_max`: of the body as it is sent."""

    bytes_max: int
    unpacked: UnpackLimits

    def of_whole(self) -> "BodyLimits":
        return replace(self, bytes_max=min(self.bytes_max, WHOLE_BYTES_MAX))


def unpack(pieces: Iterable[bytes], encoding: str, limits: UnpackLimits) -> Iterator[bytes]:
    """Unpack the body in pieces of one size; only the last is smaller.

    So the result and the cost do not depend on how the body arrived.
    """
    return _regroup(_unpack(_regroup(pieces), encoding, limits))


def _unpack(pieces: Iterable[bytes], encoding: str, limits: UnpackLimits) -> Iterator[bytes]:
    read = given = 0
    for packed, unpacked in ENCODINGS[encoding](pieces):
        read += packed
        given += len(unpacked)
        if given > limits.bytes_max:
            detail = f"unpacked, the body is larger than {limits.bytes_max} bytes: send parts"
            raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=limits.bytes_max)
        if given > FREE_BYTES and given > limits.ratio_max * read:
            most = limits.ratio_max * read
            detail = f"the body unpacks to more than {limits.ratio_max} times its size"
            raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=most)
        yield unpacked


def _regroup(pieces: Iterable[bytes]) -> Iterator[bytes]:
    kept: list[bytes] = []
    size = 0
    for piece in pieces:
        kept.append(piece)
        size += len(piece)
        if size >= STEP_BYTES:
            whole, end = b"".join(kept), size - size % STEP_BYTES
            for at in range(0, end, STEP_BYTES):
                yield whole[at : at + STEP_BYTES]
            kept, size = [whole[end:]], size - end
    if size:
        yield b"".join(kept)


Steps = Iterator[tuple[int, bytes]]
"""How many more bytes were read, and what they unpacked to."""


def _as_it_is(pieces: Iterable[bytes]) -> Steps:
    for piece in pieces:
        yield len(piece), piece


def _gunzip(pieces: Iterable[bytes]) -> Steps:
    member, members = zlib.decompressobj(GZIP), 1
    started = False
    for piece in pieces:
        size, left = len(piece), piece
        while left:
            if member.eof:  # another one follows
                member, started = zlib.decompressobj(GZIP), False
                members = _one_more("gzip", members)
            try:
                unpacked = member.decompress(left, STEP_BYTES)
            except zlib.error as error:
                raise _wrong("gzip", str(error)) from error
            started, left = True, member.unconsumed_tail or member.unused_data
            yield size, unpacked
            size = 0
        while not member.eof and (unpacked := _more(member)):
            yield 0, unpacked
    if not started or not member.eof:
        raise _cut_off("gzip")


def _more(member: "zlib._Decompress") -> bytes:
    """Return what is unpacked already and was not returned yet."""
    try:
        return member.decompress(b"", STEP_BYTES)
    except zlib.error as error:
        raise _wrong("gzip", str(error)) from error


def _unzstd(pieces: Iterable[bytes]) -> Steps:
    unpacker = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
    frame, frames = unpacker.decompressobj(), 1
    for piece in pieces:
        for at in range(0, len(piece), ZSTD_STEP_BYTES):
            step = left = piece[at : at + ZSTD_STEP_BYTES]
            size = len(step)
            while left:
                if frame.eof:
                    frame, frames = unpacker.decompressobj(), _one_more("zstd", frames)
                try:
                    unpacked = frame.decompress(left)
                except zstandard.ZstdError as error:
                    raise _wrong("zstd", str(error)) from error
                left = frame.unused_data if frame.eof else b""
                yield size, unpacked
                size = 0
    if not frame.eof:
        raise _cut_off("zstd")


def _one_more(encoding: str, parts: int) -> int:
    if parts == PARTS_MAX:
        raise _wrong(encoding, f"it has more than {PARTS_MAX} parts")
    return parts + 1


ENCODINGS: Final[dict[str, Callable[[Iterable[bytes]], Steps]]] = {
    "identity": _as_it_is,
    "gzip": _gunzip,
    "zstd": _unzstd,
}


def _wrong(encoding: str, reason: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_PACKED, f"the body is not {encoding}: {reason}")


def _cut_off(encoding: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_PACKED, f"the body is cut off: its {encoding} has no end")
