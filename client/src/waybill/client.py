"""The SDK's one class: every question to Waybill as a method.

Never repeats what changes something: only questions are asked again after a dropped connection.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import quote

from waybill.connection import Connection, Question
from waybill.errors import NotFound, NotReady
from waybill.manifests import manifest_name
from waybill.models import IssuedToken, Operation, Position, Receipt, Span, StartFrom
from waybill.ndjson import Record, encode
from waybill.outcomes import Outcome
from waybill.pipelines import Pipeline, in_phase
from waybill.sse import follow
from waybill.target import find_target
from waybill.tokens import Token, not_final, outcome_in, token_path
from waybill.waiting import Clock, Patience, SystemClock, look_until

if TYPE_CHECKING:
    import httpx2

TIMEOUT_S = 60.0  # twice what ingress gives Kafka, so that its own answer is heard
WAIT_TIMEOUT_S = 60.0  # two stages with an Iceberg sink, from cold
PAGES_MAX = 1_000  # a cursor that never ends is a fault of the server
NAME_GRACE_S = 2.0  # a pipeline applied a moment ago may not be told of yet

T = TypeVar("T")


class Client:
    """Talks to one Waybill; use it as a context manager.

    with Client() as client:
        receipt = client.send("orders", "orders", [{"order_id": 1}])
        outcome = client.wait(receipt, timeout_s=30)
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        transport: "httpx2.BaseTransport | None" = None,
        clock: Clock | None = None,
    ) -> None:
        """`url`: else WAYBILL_URL, else the stack around the folder, else 127.0.0.1:8080.

        `transport` and `clock` are for tests.
        """
        target = find_target(url, os.environ, Path.cwd())
        self._connection = Connection(target, timeout_s=timeout_s, transport=transport)
        self._clock = clock or SystemClock()

    @property
    def url(self) -> str:
        return self._connection.target.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def send(
        self,
        pipeline: str,
        input: str,
        records: Iterable[Record],
        *,
        request_id: str | None = None,
    ) -> Receipt:
        """Send records, as dicts or as JSON lines, in one request.

        Good rows are kept and bad ones named in the receipt; when all are bad, Invalid is raised
        and nothing is kept. After NoAnswer it is not known whether they were kept.
        """
        body = encode(records)
        if not body:
            raise ValueError(f"no records to send to {pipeline}.{input}")
        headers = {"Content-Type": "application/x-ndjson"}
        if request_id is not None:
            headers["X-Request-Id"] = request_id
        path = f"{_pipeline_path(pipeline)}/inputs/{quote(input, safe='')}/records"
        question = Question(method="POST", path=path, content=body, headers=headers)
        return Receipt.read(self._connection.ask(question))

    def token_for(
        self,
        pipeline: str,
        *,
        input: str | None = None,
        positions: Iterable[Position | Span] | None = None,
    ) -> IssuedToken:
        """A token for all that an input holds now, or for positions in Kafka."""
        if (input is None) == (positions is None):
            raise ValueError("token_for needs either an input or positions")
        body: dict[str, object] = {"pipeline": pipeline}
        if positions is None:
            body["input"] = input
        else:
            body["positions"] = [position.as_json() for position in positions]
        question = Question(
            method="POST",
            path="/v1/tokens",
            content=encode([body]),
            headers={"Content-Type": "application/json"},
        )
        return IssuedToken.read(self._connection.ask(question))

    def outcome(self, token: Token) -> Outcome:
        """What the token's status says now; NotFound when it is no token of ours."""
        return self._outcome(token, held_s=0.0)

    def wait(self, token: Token, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """The final outcome; StillInProgress or StillUnknown when the time is over before it."""
        outcome = self._until(
            lambda held_s: self._outcome(token, held_s=held_s),
            lambda outcome: outcome.final,
            self._patience(timeout_s),
        )
        if not outcome.final:
            raise not_final(outcome)
        return outcome

    def follow(self, token: Token, timeout_s: float = WAIT_TIMEOUT_S) -> Iterator[Outcome]:
        """Every change up to the final outcome; at the end of the time raises as `wait` does."""
        return follow(self._connection, token_path(token), self._patience(timeout_s))

    def apply(self, manifest_text: str, name: str | None = None) -> Operation:
        """Create or change a pipeline; Invalid names line and column of what is wrong."""
        path = _pipeline_path(name or manifest_name(manifest_text))
        return self._change("PUT", path, content=manifest_text.encode())

    def start(self, name: str) -> Operation:
        return self._change("POST", f"{_pipeline_path(name)}/start")

    def stop(self, name: str) -> Operation:
        return self._change("POST", f"{_pipeline_path(name)}/stop")

    def restart(self, name: str, start_from: StartFrom | None = None) -> Operation:
        """Run it with a new driver, which goes on where its sinks stand.

        `start_from`: where to begin in topics that were deleted and created again.
        """
        params = None if start_from is None else {"from": start_from}
        return self._change("POST", f"{_pipeline_path(name)}/restart", params=params)

    def delete(self, name: str) -> Operation:
        return self._change("DELETE", _pipeline_path(name))

    def operation(self, id: str, wait_s: float = 0.0) -> Operation:
        """The operation as it is now, or as soon as it is no longer pending."""
        return self._until(
            lambda held_s: self._operation(id, held_s=held_s),
            lambda operation: not operation.pending,
            self._patience(wait_s),
        )

    def pipelines(self) -> tuple[Pipeline, ...]:
        """All pipelines, without the details that `pipeline` has."""
        found: list[Pipeline] = []
        params: dict[str, str] = {}
        for _ in range(PAGES_MAX):
            page = self._connection.ask(Question(method="GET", path="/v1/pipelines", params=params))
            found.extend(Pipeline.read(item) for item in page.objects("items"))
            cursor = page.text_or_none("next_cursor")
            if cursor is None:
                break
            params = {"cursor": cursor}
        return tuple(found)

    def pipeline(self, name: str) -> Pipeline:
        question = Question(method="GET", path=_pipeline_path(name))
        return Pipeline.read(self._connection.ask(question))

    def wait_pipeline(
        self, name: str, phase: str = "Running", timeout_s: float = WAIT_TIMEOUT_S
    ) -> Pipeline:
        """The pipeline once it is in the phase.

        PipelineFailed when it comes to Failed instead, PhaseNotReached when the time is over.
        """
        grace = self._patience(min(NAME_GRACE_S, timeout_s))

        def look(_: float) -> Pipeline | None:
            try:
                return self.pipeline(name)
            except NotFound:
                if grace.over:
                    raise
                return None

        def done(seen: Pipeline | None) -> bool:
            return seen is not None and (seen.phase == phase or seen.failed)

        seen = self._until(look, done, self._patience(timeout_s))
        return in_phase(seen or self.pipeline(name), phase)

    def _patience(self, timeout_s: float) -> Patience:
        return Patience(self._clock, timeout_s)

    def _until(
        self, look: Callable[[float], T], done: Callable[[T], bool], patience: Patience
    ) -> T:
        return look_until(look, done, patience, heard=lambda: self._connection.heard)

    def _outcome(self, token: Token, *, held_s: float) -> Outcome:
        question = Question(method="GET", path=token_path(token), params=_wait(held_s))
        try:
            return Outcome.read(self._connection.ask(question, held_s=held_s))
        except NotReady as error:
            unknown = outcome_in(error)
            if unknown is None:
                raise
            return unknown

    def _operation(self, id: str, *, held_s: float) -> Operation:
        path = f"/v1/operations/{quote(id, safe='')}"
        question = Question(method="GET", path=path, params=_wait(held_s))
        return Operation.read(self._connection.ask(question, held_s=held_s))

    def _change(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Operation:
        headers = None if content is None else {"Content-Type": "application/yaml"}
        question = Question(
            method=method, path=path, content=content, params=params, headers=headers
        )
        return Operation.accepted(self._connection.ask(question))


def _pipeline_path(name: str) -> str:
    if not name:
        raise ValueError("the name of the pipeline is empty")
    return f"/v1/pipelines/{quote(name, safe='')}"


def _wait(held_s: float) -> dict[str, str]:
    return {"wait": f"{held_s:.3g}"} if held_s > 0.0 else {}
