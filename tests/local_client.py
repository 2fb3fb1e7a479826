"""A client on the machine of the application: without API keys, others get no answer."""

from fastapi.testclient import TestClient
from starlette.types import ASGIApp

URL = "http://127.0.0.1:8080"


def local_client(app: ASGIApp, *, raise_server_exceptions: bool = True) -> TestClient:
    return TestClient(app, base_url=URL, raise_server_exceptions=raise_server_exceptions)
