"""Shows what a pipeline does while a command waits for it: phase, queue position, seconds.

On a terminal it redraws one line; elsewhere it shows nothing. Never prints to stdout.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from waybill.cli import render
from waybill.cli.render import Form
from waybill.cli.session import connect
from waybill.errors import WaybillError

if TYPE_CHECKING:
    from rich.status import Status

    from waybill.sync.client import Client

DRIVER_WAIT_S = 120.0  # for a pipeline to run: a first driver on a busy machine needs most of it
LOOK_INTERVAL_S = 0.5
LOOK_TIMEOUT_S = 2.0  # it is good to know, and nobody waits for it


@contextmanager
def show_phase(name: str, doing: str, output: Form) -> Iterator[None]:
    """Show the phase from a thread while the block runs, because the block is one long request."""
    if output is Form.JSON or not render.lively():
        yield
        return
    over = Event()
    with render.console(sys.stderr).status(render.clean(doing)) as status:
        looking = Thread(target=_look, args=(name, doing, status, over))
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()


def _look(name: str, doing: str, status: "Status", over: Event) -> None:
    began = time.monotonic()
    with connect(timeout_s=LOOK_TIMEOUT_S) as client:
        while not over.wait(LOOK_INTERVAL_S):
            facts = (*_phase(client, name), f"{time.monotonic() - began:.0f} s")
            status.update(render.clean(f"{doing}: {', '.join(facts)}"))


def _phase(client: "Client", name: str) -> tuple[str, ...]:
    try:
        pipeline = client.pipeline(name)
    except WaybillError:
        return ()
    return tuple(filter(None, (pipeline.phase, pipeline.reason)))
