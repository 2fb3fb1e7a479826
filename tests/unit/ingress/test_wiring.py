"""A process whose producer has failed for good is of no use: a new one begins with a new one."""

import uvicorn
from fastapi import FastAPI

from waybill_ingress.wiring import Ending


def test_servers_end_when_nothing_can_be_written_any_more() -> None:
    ending = Ending()
    server = uvicorn.Server(uvicorn.Config(FastAPI()))
    ending.servers.append(server)

    ending.end("fenced")

    assert (ending.reason, server.should_exit) == ("fenced", True)
