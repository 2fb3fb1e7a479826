"""Keeps bodies of requests and their records: small ones in memory, larger ones in files.

So a request needs a few megabytes of memory, whatever its size.
"""

import hashlib
import marshal
import tempfile
from collections.abc import Iterator
from functools import cached_property, partial
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
PIECE_RECORDS: Final = 4_000
PIECE_BYTES: Final = 2_000_000
SMALL_BYTES: Final = 200_000


class ReceivedBody:
    """A received body. Fulfils `Body`."""

    def __init__(self, encoding: str, limits: UnpackLimits) -> None:
        self._encoding = encoding
        self._limits = limits
        self._size = 0
        self._memory: list[bytes] = []
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def take(self, piece: bytes) -> int:
        """Add a piece. Return the size of all pieces so far."""
        self._size += len(piece)
        if self._file is None and self._size > IN_MEMORY_BYTES:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the body
            self._file.writelines(self._memory)
            self._memory = []
        if self._file is None:
            self._memory.append(piece)
        else:
            self._file.write(piece)
        return self._size

    @property
    def small(self) -> bool:
        return self._size < SMALL_BYTES and self._encoding == "identity"

    @cached_property
    def digest(self) -> str:
        """A hash of what was sent, and of how it is packed."""
        digest = hashlib.sha256(self._encoding.encode())
        for piece in self._pieces():
            digest.update(piece)
        return digest.hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """Return the body from its start, unpacked."""
        if self.small and self._size <= self._limits.bytes_max:
            return iter((b"".join(self._memory),))
        return unpack(self._pieces(), self._encoding, self._limits)

    def _pieces(self) -> Iterator[bytes]:
        if self._file is None:
            return iter(self._memory)
        self._file.seek(0)
        return iter(partial(self._file.read, READ_BYTES), b"")


async def receive(request: Request, limits: BodyLimits) -> ReceivedBody:
    """Receive the body to its end. Raises Refusal (413) as soon as it is known to be too large."""
    body = ReceivedBody(
        encoding_of(", ".join(request.headers.getlist("content-encoding"))), limits.unpacked
    )
    declared, most = request.headers.get("content-length", ""), limits.bytes_max
    size = int(declared) if declared.isdecimal() else 0
    try:
        if size <= most:
            async for piece in request.stream():
                if (size := body.take(piece)) > most:
                    break
        if size > most:
            detail = f"the body is larger than {most} bytes: send it in several requests"
            raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=most)
    except ClientDisconnect as error:  # nobody is left to read the answer
        body.close()
        raise Refusal(Slug.REQUEST_CUT_OFF, "the body has no end") from error
    except BaseException:
        body.close()
        raise
    return body


class RecordSpool:
    """A store for records. Fulfils `Spool`."""

    def __init__(self) -> None:
        self.count = 0
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
