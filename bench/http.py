"""Asks a service over one connection that stays open, as a client in a hurry does."""

import http.client
import json
from urllib.parse import urlsplit

TIMEOUT_S = 60.0
JSON = "application/json"


class Http:
    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = JSON) -> object:
        headers = {"Content-Type": kind} if body is not None else {}
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        except (BrokenPipeError, http.client.RemoteDisconnected):  # it was idle for too long
            self._connection.close()
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def post(self, path: str, body: object) -> object:
        return self.ask("POST", path, json.dumps(body).encode())
