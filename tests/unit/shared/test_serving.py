"""A server ends when what it serves has failed for good: a new process begins anew."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event

from fastapi import FastAPI

from waybill_shared.http.serving import serve


def test_server_ends_when_its_application_has_failed() -> None:
    failed, stopped = Event(), Event()

    @asynccontextmanager
    async def fail(app: FastAPI) -> AsyncIterator[None]:
        failed.set()
        yield

    app = FastAPI(lifespan=fail)
    assert not serve(app, host="127.0.0.1", port=0, failed=failed, on_stop=stopped.set)
    assert stopped.is_set()
