"""Looks up the addresses of hosts without holding up others."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final

AT_ONCE: Final = 50
TIMEOUT_S: Final = 10.0


class HostNames:
    """A name that takes long keeps a thread until the machine gives it up: so the threads are its
    own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="host names")

    async def find(self, host: str, port: int, timeout_s: float = TIMEOUT_S) -> tuple[str, ...]:
        """Its addresses; OSError when there are none, or it takes longer."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                found = await loop.run_in_executor(self._threads, _look_up, host, port)
        except TimeoutError as error:
            raise OSError(f"{host:.200} is not found in {timeout_s:.0f} s") from error
        except (OSError, UnicodeError) as error:
            raise OSError(f"{host:.200} is not found") from error
        return found


def _look_up(host: str, port: int) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))
