"""Answers to a request with a key that was used before."""

from collections.abc import Awaitable, Callable

from waybill_ingress.app.idempotency_ports import HttpAnswer
from waybill_ingress.app.measuring import count_keyed
from waybill_ingress.app.ports import Log
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.requests import RequestAnswer


def ready(said: HttpAnswer) -> Callable[[Log], Awaitable[HttpAnswer]]:
    """Return what writes nothing and answers so."""

    async def say(_: Log) -> HttpAnswer:
        return said

    return say


def repeat_answer(answer: RequestAnswer) -> HttpAnswer:
    return HttpAnswer(status=answer.status, headers=answer.headers, body=answer.body, replayed=True)


def key_reused() -> Refusal:
    count_keyed("reused")
    hint = "a key is for one request: use another one, or send exactly what was sent first"
    detail = "another request was sent with this key: its method, path, query or body differs"
    return Refusal(Slug.KEY_REUSED, detail, hint=hint)


def still_running() -> Refusal:
    count_keyed("running")
    detail = "a request with this Idempotency-Key is still being carried out"
    return Refusal(Slug.REQUEST_RUNNING, detail, hint="send it again in a moment")
