"""Every question to Waybill as a value: what goes over the wire. Never talks to anything."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from urllib.parse import quote

from waybill.dead_letters import Edit, edit_body
from waybill.errors import Unusable
from waybill.manifests import manifest_name
from waybill.models import Position, Span
from waybill.ndjson import encode
from waybill.payloads import Records, payload_of
from waybill.tokens import AnyToken, text_of

PATH_TOKEN_CHARACTERS_MAX = 4_096  # a longer token goes into a body: proxies cut long addresses
KEY_CHARACTERS_MAX = 255
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request."""

    method: str
    path: str
    content: bytes | None = None
    params: Mapping[str, str | Sequence[str]] | None = None
    headers: Mapping[str, str] | None = None


def send(
    pipeline: str,
    input: str,
    records: Records,
    *,
    atomic: bool = False,
    request_id: str | None = None,
    if_match: str | None = None,
    key: str | None = None,
) -> Question:
    body = payload_of(records)
    if not body.content:
        raise Unusable(f"no records to send to {pipeline}.{input}")
    headers = {"Content-Type": body.media_type}
    if request_id is not None:
        headers["X-Request-Id"] = request_id
    if if_match is not None:
        headers["If-Match"] = if_match
    if key is not None:
        headers["Idempotency-Key"] = key_of(key)
    path = f"{pipeline_path(pipeline)}/inputs/{quote(input, safe='')}/records"
    params = {**body.options, **({"atomic": "true"} if atomic else {})}
    return Question(
        method="POST", path=path, content=body.content, params=params or None, headers=headers
    )


def key_of(key: str) -> str:
    printable = key.isascii() and key.isprintable() and key == key.strip()
    if not (0 < len(key) <= KEY_CHARACTERS_MAX and printable):
        rule = f"a key is 1 to {KEY_CHARACTERS_MAX} printable characters of ASCII, without a space"
        raise Unusable(f"{rule} at its beginning or end")
    return key


def token_for(
    pipeline: str,
    *,
    input: str | None,
    positions: Iterable[Position | Span] | None,
    connector: str | None = None,
    cluster_id: str | None = None,
    if_match: str | None = None,
) -> Question:
    if (input is None) == (positions is None):
        raise Unusable("token_for needs either an input or positions")
    if connector is not None and input is None:
        raise Unusable("a connector belongs to an input")
    body: dict[str, object] = {"pipeline": pipeline}
    if connector is not None:
        body["connector"] = connector
    if positions is None:
        body["input"] = input
    else:
        body["positions"] = [asdict(position) for position in positions]
    if cluster_id is not None:
        body["cluster_id"] = cluster_id
    headers = JSON if if_match is None else {**JSON, "If-Match": if_match}
    return replace(post("/v1/tokens", body), headers=headers)


def replay(
    pipeline: str,
    ids: Iterable[str],
    *,
    again: bool = False,
    yes: bool = False,
    edited: Edit | None = None,
    if_match: str | None = None,
) -> Question:
    if isinstance(ids, str):
        raise TypeError("ids should be an iterable: put a single id into a list")
    wanted = list(ids)
    if not wanted:
        raise Unusable("there are no dead letters to replay")
    if edited is not None and len(wanted) != 1:
        raise Unusable("an edit belongs to a single dead letter")
    path = f"{pipeline_path(pipeline)}/dead-letters/replay"
    headers = JSON if if_match is None else {**JSON, "If-Match": if_match}
    body: dict[str, object] = {"ids": wanted, "again": again}
    if yes:
        body["yes"] = True
    if edited is not None:
        body["edited"] = edit_body(edited)
    return replace(post(path, body), headers=headers)


def merge(tokens: Iterable[AnyToken]) -> Question:
    if isinstance(tokens, str):
        raise TypeError("tokens should be an iterable: put a single token into a list")
    texts = [text_of(token, f"tokens[{index}]") for index, token in enumerate(tokens)]
    if not texts:
        raise Unusable("there are no tokens to merge")
    return post("/v1/tokens", {"merge": texts})


def outcome(token: AnyToken, *, wait_s: float = 0.0) -> Question:
    """Return the question for the outcome itself; for a long token see `outcomes`."""
    return Question(method="GET", path=token_path(token), params=_wait(wait_s))


def outcomes(tokens: Sequence[AnyToken], *, wait_s: float = 0.0) -> Question:
    texts = [text_of(token) for token in tokens]
    return post("/v1/tokens/query", {"tokens": texts}, params=_wait(wait_s))


def token_path(token: AnyToken) -> str:
    return f"/v1/tokens/{quote(text_of(token), safe='')}"


def long(token: AnyToken) -> bool:
    return len(text_of(token)) > PATH_TOKEN_CHARACTERS_MAX


def apply(manifest_text: str, name: str | None, *, allow_shared: bool) -> Question:
    return Question(
        method="PUT",
        path=pipeline_path(name or manifest_name(manifest_text)),
        content=manifest_text.encode(),
        params={"allow_shared": "true"} if allow_shared else None,
        headers={"Content-Type": "application/yaml"},
    )


def check(manifest_text: str, *, allow_shared: bool) -> Question:
    permission = {"allow_shared": True} if allow_shared else {}
    return post("/v1/validate", {"manifest": manifest_text, **permission})


def propose(topic: str) -> Question:
    if not topic:
        raise Unusable("the name of the topic is empty")
    return post("/v1/propose", {"topic": topic})


def convert(sql: str, name: str) -> Question:
    return post("/v1/convert", {"name": name, "sql": sql})


def view(sinks: Iterable[str], through: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the part of the path that a watch waits for; empty for all of it."""
    named = {"sinks": [*sinks], "through": [*through]}
    return {what: names for what, names in named.items() if names}


def watch(
    token: AnyToken,
    labels: Mapping[str, str],
    view: Mapping[str, list[str]],
    webhook: Mapping[str, str] | None,
    *,
    key: str,
) -> Question:
    body: dict[str, object] = {"token": text_of(token), "labels": dict(labels)}
    if view:
        body["view"] = view
    if webhook is not None:
        body["webhook"] = webhook
    return replace(post("/v1/watches", body), headers={**JSON, "Idempotency-Key": key})


def watches(cursor: str) -> Question:
    params = {"limit": "1000", **({"cursor": cursor} if cursor else {})}
    return Question(method="GET", path="/v1/watches", params=params)


def find_watch(id: str) -> Question:
    return Question(method="GET", path=f"/v1/watches/{quote(id, safe='')}")


def unwatch(id: str, key: str) -> Question:
    headers = {"Idempotency-Key": key}
    return replace(find_watch(id), method="DELETE", headers=headers)


def redeliver(id: str, key: str) -> Question:
    path, headers = f"{find_watch(id).path}/redeliver", {"Idempotency-Key": key}
    return Question(method="POST", path=path, headers=headers)


def status_events(
    types: Iterable[str],
    *,
    pipeline: str | None,
    stage: str | None,
    watch: str | None,
    labels: Mapping[str, str],
) -> Question:
    if isinstance(types, str):
        raise TypeError("types should be an iterable: put a single type into a list")
    named = {"pipeline": pipeline, "stage": stage, "watch": watch}
    params: dict[str, str | Sequence[str]] = {n: v for n, v in named.items() if v is not None}
    params |= {"type": [*types], "label": [f"{name}={value}" for name, value in labels.items()]}
    return Question(method="GET", path="/v1/events", params=params)


def with_wait(change: Question, wait_s: float) -> Question:
    """Return the change, to be answered when it is done or refused, or after `wait_s`."""
    return replace(change, params={**(change.params or {}), "wait": f"{wait_s:.3g}"})


def operation(id: str, *, wait_s: float = 0.0) -> Question:
    path = f"/v1/operations/{quote(id, safe='')}"
    return Question(method="GET", path=path, params=_wait(wait_s))


def pipelines(cursor: str | None, phases: Sequence[str] = (), tags: Sequence[str] = ()) -> Question:
    named = {"cursor": cursor or "", "phase": [*phases], "tag": [*tags]}
    params = {name: value for name, value in named.items() if value}
    return Question(method="GET", path="/v1/pipelines", params=params)


def flow() -> Question:
    return Question(method="GET", path="/v1/flow")


def pipeline(name: str) -> Question:
    return Question(method="GET", path=pipeline_path(name))


def offsets(name: str) -> Question:
    return Question(method="GET", path=f"{pipeline_path(name)}/offsets")


def manifests(name: str) -> Question:
    return Question(method="GET", path=f"{pipeline_path(name)}/manifests")


def logs(name: str, lines: int) -> Question:
    return Question(method="GET", path=f"{pipeline_path(name)}/logs", params={"lines": str(lines)})


def post(
    path: str, body: Mapping[str, object], params: Mapping[str, str] | None = None
) -> Question:
    content = encode([body])
    return Question(method="POST", path=path, content=content, params=params, headers=JSON)


def pipeline_past(name: str, what: str, params: Mapping[str, str] | None = None) -> Question:
    """Return the question for a page of the past of a pipeline, such as its `events`."""
    return Question(method="GET", path=f"{pipeline_path(name)}/{what}", params=params)


def dead_letters(name: str, filters: Mapping[str, str | None], cursor: str | None) -> Question:
    """Return the question for a page of dead letters, the newest first."""
    wanted = {**filters, "cursor": cursor}
    params = {key: value for key, value in wanted.items() if value is not None}
    return Question(method="GET", path=f"{pipeline_path(name)}/dead-letters", params=params)


def dead_letter(name: str, letter_id: str) -> Question:
    path = f"{pipeline_path(name)}/dead-letters/{quote(letter_id, safe='')}"
    return Question(method="GET", path=path)


def event_stream(question: Question, after: str | None) -> Question:
    """Return the same question, answered as a stream; `after` is the id of the last event seen."""
    headers = {"Accept": "text/event-stream"}
    if after is not None:
        headers["Last-Event-ID"] = after
    return replace(question, headers=headers)


def pipeline_path(name: str) -> str:
    if not name:
        raise Unusable("the name of the pipeline is empty")
    return f"/v1/pipelines/{quote(name, safe='')}"


def _wait(wait_s: float) -> dict[str, str]:
    return {"wait": f"{wait_s:.3g}"} if wait_s > 0.0 else {}
