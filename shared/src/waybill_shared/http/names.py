"""Looks up the addresses of hosts without holding up others."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import Final

AT_ONCE: Final = 50
TIMEOUT_S: Final = 10.0


class HostNames:
    """A name that takes long keeps a thread until the machine gives it up: so the threads are its
    own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="host names")
        self._free = BoundedSemaphore(AT_ONCE)

    async def find(self, host: str, port: int, timeout_s: float = TIMEOUT_S) -> tuple[str, ...]:
        """Return the addresses of a host. Raise OSError when there are none, or it takes longer."""
        if not self._free.acquire(blocking=False):
            raise OSError(f"{host:.200} is not looked up: {AT_ONCE} other names take too long")
        looking = self._threads.submit(_look_up, host, port)
        looking.add_done_callback(lambda _: self._free.release())
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.wrap_future(looking)
        except TimeoutError as error:
            raise OSError(f"{host:.200} is not found in {timeout_s:.0f} s") from error
        except (OSError, UnicodeError) as error:
            raise OSError(f"{host:.200} is not found") from error


def _look_up(host: str, port: int) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))
