"""A real TLS hop in front of a server that has none: the bundled Valkey is built without it."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHUNK = 64 * 1024


@contextmanager
def tls_before(port: int, certificate: Path) -> Iterator[int]:
    """Takes TLS on the port that is given and passes what it hears to `port`, and back."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(
        asyncio.start_server(lambda r, w: _serve(r, w, port), "127.0.0.1", 0, ssl=context)
    )
    thread = threading.Thread(target=loop.run_forever, name="tls")
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    ours = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not ours]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_copy(reader, inner_writer))
            both.create_task(_copy(inner_reader, writer))
    except* OSError:
        pass  # one side went away
    finally:
        inner_writer.close()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError
