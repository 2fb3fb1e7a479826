"""Bodies of requests and their records, in memory while they are small and in files above that: so
a request takes a few megabytes of memory, whatever its size."""

import hashlib
import marshal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import IO, Final, Self

from fastapi import Request
from starlette.requests import ClientDisconnect

from waybill_ingress.core.bodies.forms import encoding_of
from waybill_ingress.core.bodies.packed import BodyLimits, UnpackLimits, unpack
from waybill_ingress.core.rows import Record
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

IN_MEMORY_BYTES: Final = 1_000_000
READ_BYTES: Final = 65_536
PIECE_RECORDS: Final = 10_000
PIECE_BYTES: Final = 2_000_000
SMALL_BYTES: Final = 200_000


class ReceivedBody:
    """Fulfils `Body`."""

    def __init__(self, file: IO[bytes], size: int, encoding: str, limits: UnpackLimits) -> None:
        self._file = file
        self._size = size
        self._encoding = encoding
        self._limits = limits

    @property
    def small(self) -> bool:
        return self._size < SMALL_BYTES and self._encoding == "identity"

    @cached_property
    def digest(self) -> str:
        """Of what was sent, and of how it is packed."""
        digest = hashlib.sha256(self._encoding.encode())
        for piece in self._pieces():
            digest.update(piece)
        return digest.hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """From its beginning, unpacked."""
        return unpack(self._pieces(), self._encoding, self._limits)

    def _pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(READ_BYTES):
            yield piece


@asynccontextmanager
async def received(request: Request, limits: BodyLimits) -> AsyncIterator[ReceivedBody]:
    """The body to its end; 413 as soon as it is known to be larger."""
    encoding = encoding_of(request.headers.get("content-encoding", ""))
    declared = request.headers.get("content-length", "")
    size, most = int(declared) if declared.isdecimal() else 0, limits.bytes_max
    with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as file:
        if size <= most:
            size = 0
            try:
                async for piece in request.stream():
                    size += len(piece)
                    if size > most:
                        break
                    file.write(piece)
            except ClientDisconnect as error:  # nobody is left to read the answer
                raise Refusal(Slug.REQUEST_CUT_OFF, "the body has no end") from error
        if size > most:
            detail = f"the body is larger than {most} bytes: send it in several requests"
            raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=most)
        yield ReceivedBody(file, size, encoding, limits.unpacked)


class RecordSpool:
    """Fulfils `Spool`."""

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self._file: IO[bytes] | None = None
        self._newest: list[Record] = []
        self._newest_size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, record: Record) -> None:
        size = len(record.value) + len(record.key or b"")
        if self._newest_size + size > PIECE_BYTES or len(self._newest) == PIECE_RECORDS:
            self._put_away()
        self._newest.append(record)
        self._newest_size += size
        self.count += 1
        self.size += size

    def pieces(self) -> Iterator[list[Record]]:
        if self._file is not None:
            self._file.seek(0)
            end = self.count - len(self._newest)
            while end > 0:
                piece = [Record(*fields) for fields in marshal.load(self._file)]
                end -= len(piece)
                yield piece
        if self._newest:
            yield self._newest

    def _put_away(self) -> None:
        if self._newest:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
            marshal.dump([tuple(record) for record in self._newest], self._file)
            self._newest, self._newest_size = [], 0
