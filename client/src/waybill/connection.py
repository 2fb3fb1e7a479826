"""One HTTP connection to Waybill: requests in, JSON out, every failure as a WaybillError.

The only file that imports the HTTP library. Never repeats a request.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2

from waybill.errors import NoAnswer, UnexpectedAnswer, Unreachable
from waybill.fields import Fields
from waybill.problems import problem_from
from waybill.target import URL_VARIABLE, Target
from waybill.version import client_version

CONNECT_TIMEOUT_S = 5.0  # a live host answers a connect at once
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request."""

    method: str
    path: str
    content: bytes | None = None
    params: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None


class Connection:
    """Talks to one target; `heard` tells whether anything has ever answered."""

    def __init__(
        self, target: Target, *, timeout_s: float, transport: httpx2.BaseTransport | None
    ) -> None:
        self.target = target
        self.heard = False
        self._timeout_s = timeout_s
        try:
            url = httpx2.URL(target.url)
        except httpx2.InvalidURL as error:
            raise Unreachable(f"{self._place} is no URL: {error}", url=target.url) from error
        loopback = url.host in LOOPBACK_HOSTS
        self._http = httpx2.Client(
            base_url=url,
            transport=transport,
            headers={"User-Agent": f"waybill-client/{client_version()}"},
            # A proxy from the environment can never reach this machine's loopback.
            trust_env=not loopback,
            # Loading certificates takes 0.1 s, and plain http to loopback uses none.
            verify=not (loopback and url.scheme == "http"),
        )

    def close(self) -> None:
        self._http.close()

    def ask(self, question: Question, *, held_s: float = 0.0) -> Fields:
        """The JSON object answered; `held_s` is how long the server may hold the request."""
        timeout_s = self._timeout_s + held_s
        with self._translated(timeout_s), self._open(question, timeout_s) as response:
            response.read()
            return self._json(response, question)

    @contextmanager
    def listen(self, question: Question, *, silence_s: float) -> Iterator[Iterator[bytes]]:
        """The bytes of an event stream as they come; NoAnswer after `silence_s` without any."""
        with self._translated(silence_s), self._open(question, silence_s) as response:
            if response.status_code != httpx2.codes.OK:
                response.read()
                self._json(response, question)
            kind = response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                raise self._foreign(response, question)
            yield response.iter_bytes()

    @contextmanager
    def _open(self, question: Question, timeout_s: float) -> Iterator[httpx2.Response]:
        with self._http.stream(
            question.method,
            question.path,
            content=question.content,
            params=question.params,
            headers=question.headers,
            timeout=httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        ) as response:
            self.heard = True
            yield response

    @contextmanager
    def _translated(self, timeout_s: float) -> Iterator[None]:
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise Unreachable(
                f"nothing listens at {self._place}: start the local stack with `waybill up`, "
                f"or set {URL_VARIABLE}",
                url=self.target.url,
            ) from error
        except httpx2.TimeoutException as error:
            raise NoAnswer(
                f"no answer from {self._place} within {timeout_s:g} s: "
                "whether it was carried out is not known",
                url=self.target.url,
            ) from error
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise Unreachable(
                f"{self._place} should begin with http:// or https://", url=self.target.url
            ) from error
        except httpx2.RequestError as error:
            raise Unreachable(
                f"the connection to {self._place} broke ({error}): "
                "whether the request was carried out is not known",
                url=self.target.url,
            ) from error

    def _json(self, response: httpx2.Response, question: Question) -> Fields:
        where = f"the answer to {question.method} {question.path}"
        try:
            body = Fields(response.json(), where)
        except (ValueError, UnexpectedAnswer):
            body = None
        if response.is_success and body is not None:
            return body
        problem = problem_from(response.status_code, response.headers, body)
        raise problem if problem is not None else self._foreign(response, question)

    def _foreign(self, response: httpx2.Response, question: Question) -> UnexpectedAnswer:
        kind = response.headers.get("content-type", "no content type")
        return UnexpectedAnswer(
            f"{self._place} answered {question.method} {question.path} with status "
            f"{response.status_code} and {kind}, as Waybill never does: "
            f"is another program on that port? if so, set {URL_VARIABLE}"
        )

    @property
    def _place(self) -> str:
        return f"{self.target.url} ({self.target.source})"
