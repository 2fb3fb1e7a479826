"""Unpacks bodies in steps of a bounded size, and sees when there is no end to it. Pure."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import zstandard

from waybill_ingress.core.rows import row_refusal
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

GZIP: Final = 31  # for zlib: with the header of gzip, and its check sum
STEP_BYTES: Final = 65_536
ZSTD_STEP_BYTES: Final = 256  # a block of four bytes may become 128 kB
ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
FREE_BYTES: Final = 1_000_000  # so much of anything is unpacked


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackLimits:
    """`ratio_max`: how many times as large as it is packed."""

    bytes_max: int
    ratio_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """`bytes_max`: as it is sent."""

    bytes_max: int
    unpacked: UnpackLimits


def unpack(pieces: Iterable[bytes], encoding: str, limits: UnpackLimits) -> Iterator[bytes]:
    taken = given = 0
    for size, piece in ENCODINGS[encoding](pieces):
        taken += size
        given += len(piece)
        if given > limits.bytes_max:
            detail = f"unpacked, the body is larger than {limits.bytes_max} bytes: send parts"
            raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=limits.bytes_max)
        if given > FREE_BYTES and given > limits.ratio_max * taken:
            detail = f"the body unpacks to more than {limits.ratio_max} times its size"
            raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=limits.ratio_max * taken)
        if piece:
            yield piece


Steps = Iterator[tuple[int, bytes]]
"""How many bytes more were taken, and what came of them."""


def _as_it_is(pieces: Iterable[bytes]) -> Steps:
    for piece in pieces:
        yield len(piece), piece


def _gunzip(pieces: Iterable[bytes]) -> Steps:
    member = zlib.decompressobj(GZIP)
    begun = False
    for piece in pieces:
        size, left = len(piece), piece
        while left:
            if member.eof:  # another one follows
                member, begun = zlib.decompressobj(GZIP), False
            try:
                unpacked = member.decompress(left, STEP_BYTES)
            except zlib.error as error:
                raise _wrong("gzip", str(error)) from error
            begun, left = True, member.unconsumed_tail or member.unused_data
            yield size, unpacked
            size = 0
        while not member.eof and (unpacked := _more(member)):
            yield 0, unpacked
    if not begun or not member.eof:
        raise _cut_off("gzip")


def _more(member: "zlib._Decompress") -> bytes:
    """What is unpacked already, and was held back."""
    try:
        return member.decompress(b"", STEP_BYTES)
    except zlib.error as error:
        raise _wrong("gzip", str(error)) from error


def _unzstd(pieces: Iterable[bytes]) -> Steps:
    frame = _Frame()
    for piece in pieces:
        for at in range(0, len(piece), ZSTD_STEP_BYTES):
            step = left = piece[at : at + ZSTD_STEP_BYTES]
            size = len(step)
            while left:
                if frame.eof:
                    frame = _Frame()
                unpacked, left = frame.unpack(left)
                yield size, unpacked
                size = 0
    if not frame.eof:
        raise _cut_off("zstd")


class _Frame:
    def __init__(self) -> None:
        self._object = zstandard.ZstdDecompressor(
            max_window_size=ZSTD_WINDOW_BYTES_MAX
        ).decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._object.eof)

    def unpack(self, piece: bytes) -> tuple[bytes, bytes]:
        """And what is behind the frame."""
        try:
            unpacked = self._object.decompress(piece)
        except zstandard.ZstdError as error:
            raise _wrong("zstd", str(error)) from error
        return unpacked, self._object.unused_data if self._object.eof else b""


ENCODINGS: Final[dict[str, Callable[[Iterable[bytes]], Steps]]] = {
    "identity": _as_it_is,
    "gzip": _gunzip,
    "zstd": _unzstd,
}


def _wrong(encoding: str, reason: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_PACKED, f"the body is not {encoding}: {reason}")


def _cut_off(encoding: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_PACKED, f"the body is cut off: its {encoding} has no end")
