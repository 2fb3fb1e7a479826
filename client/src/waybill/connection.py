"""HTTP to Waybill: requests in, JSON out, every failure as a WaybillError.

`Line` is what both connections share, in `aio.connection` and `sync.connection`. Only these three
files import the HTTP library. They never show the API key.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypedDict

import httpx2

from waybill.errors import NoAnswer, UnexpectedAnswer, Unreachable
from waybill.fields import Fields
from waybill.problems import problem_from
from waybill.questions import Question
from waybill.target import URL_VARIABLE, Target
from waybill.version import client_version

CONNECT_TIMEOUT_S = 5.0  # a live host answers a connect at once
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class _Options(TypedDict):
    base_url: httpx2.URL
    headers: dict[str, str]
    trust_env: bool
    verify: bool


@dataclass(slots=True)
class Line:
    """The common part of both connections: the target, and whether anything has ever answered
    there."""

    target: Target
    has_answered: bool = False

    def options(self, api_key: str | None) -> _Options:
        try:
            url = httpx2.URL(self.target.url)
        except httpx2.InvalidURL as error:
            raise Unreachable(f"{self.place} is no URL: {error}", url=self.target.url) from error
        headers = {"User-Agent": f"waybill-client/{client_version()}"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        loopback = url.host in LOOPBACK_HOSTS
        return _Options(
            base_url=url,
            headers=headers,
            # A proxy from the environment can never reach this machine's loopback.
            trust_env=not loopback,
            # Loading certificates takes 0.1 s, and plain http to loopback uses none.
            verify=not (loopback and url.scheme == "http"),
        )

    @contextmanager
    def translate_errors(self, timeout_s: float) -> Iterator[None]:
        """Raise every failure of the HTTP library as an error of this SDK."""
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise Unreachable(
                f"nothing listens at {self.place}: start the local stack with `waybill up`, "
                f"or set {URL_VARIABLE}",
                url=self.target.url,
                sent=False,
            ) from error
        except httpx2.TimeoutException as error:
            raise NoAnswer(
                f"no answer from {self.place} within {timeout_s:g} s: "
                "whether it was carried out is not known",
                url=self.target.url,
            ) from error
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise Unreachable(
                f"{self.place} should begin with http:// or https://",
                url=self.target.url,
                sent=False,
            ) from error
        except httpx2.RequestError as error:
            raise Unreachable(
                f"the connection to {self.place} broke ({error}): "
                "whether the request was carried out is not known",
                url=self.target.url,
            ) from error

    def request(
        self, http: httpx2.Client | httpx2.AsyncClient, question: Question, timeout_s: float
    ) -> httpx2.Request:
        return http.build_request(
            question.method,
            question.path,
            content=question.content,
            params=question.params,
            headers=question.headers,
            timeout=httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        )

    def check_stream(self, response: httpx2.Response, question: Question) -> None:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise self.foreign(response, question)

    def json(self, response: httpx2.Response, question: Question) -> Fields:
        """Return the JSON object of an answer that was read, or raise the problem that it is."""
        where = f"the answer to {question.method} {question.path}"
        try:
            body = Fields(response.json(), where)
        except (ValueError, UnexpectedAnswer):
            body = None
        if response.is_success and body is not None:
            return body
        problem = problem_from(response.status_code, response.headers, body)
        raise problem if problem is not None else self.foreign(response, question)

    def foreign(self, response: httpx2.Response, question: Question) -> UnexpectedAnswer:
        kind = response.headers.get("content-type", "no content type")
        return UnexpectedAnswer(
            f"{self.place} answered {question.method} {question.path} with status "
            f"{response.status_code} and {kind}, as Waybill never does: "
            f"is another program on that port? if so, set {URL_VARIABLE}"
        )

    @property
    def place(self) -> str:
        return f"{self.target.url} ({self.target.source})"
