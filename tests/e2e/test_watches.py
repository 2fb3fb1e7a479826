"""Told instead of asking: each watch is told once its token is final, through any restart, and with
the outcome that asking gives."""

import json
import os
import random
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import redis

from e2e.conftest import Apply, Pipeline, order
from e2e.faults import await_ready, kill_services, paused, process_of
from e2e.load import numbers_in
from e2e.waiting import eventually
from waybill import Client, Event, Invalid
from waybill.watches import TOKEN_FINAL
from waybill.webhooks import new_secret
from waybill_local.services import topic_prefix
from waybill_local.stack import StackState
from waybill_shared.contract import codec
from waybill_shared.contract.status_events import MEDIA_TYPE, StatusEvent
from waybill_shared.contract.words import EventType
from waybill_shared.http.asyncapi import payload_of
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end

RECEIVER = Path(__file__).parents[2] / "examples" / "webhook_receiver.py"
AUDIT = """
version: 1
name: {name}
inputs:
  - name: enriched
    kafka: {{topic: {read}}}
    schema: "order_id BIGINT, tax DECIMAL(12,3)"
stages:
  - name: keep
    inputs: [enriched]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - {{name: out, kafka: {{topic: {name}.out, key: order_id, partitions: 2}}}}
"""
WITHIN_S = 120.0
SENT = 504  # tokens, each with up to three watches
STANDS_S = 10.0
DICE = random.Random(19)
SCHEMAS = {kind: jsonschema_rs.validator_for(payload_of(kind)) for kind in EventType}


class Listener:
    """Follows events with the SDK, from when it stands."""

    def __init__(self, stack: StackState, label: str) -> None:
        self._client = Client(stack.url)
        self.events: list[Event] = []
        self._label = label
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for event in self._client.events(types=[TOKEN_FINAL], labels={"test": self._label}):
            self.events.append(event)

    def by_watch(self) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        for event in self.events:
            found.setdefault(event.subject, []).append(event)
        return found


def told_in_kafka(stack: StackState, kafka: KafkaAdmin) -> list[StatusEvent]:
    """As readers of committed records have it; each is valid."""
    found = []
    for message in read_to_end(kafka.cluster, f"{topic_prefix()}.status", range(8)):
        value = message.value() or b""
        event = json.loads(value)
        SCHEMAS[event["type"]].validate(event)
        assert dict(message.headers() or [])["content-type"] == MEDIA_TYPE.encode()
        found.append(codec.decode(StatusEvent, value))
    return found


def outcome_of(event: Event | StatusEvent) -> object:
    outcome = event.data["outcome"]
    assert isinstance(outcome, dict)
    return outcome


def asked(client: Client, token: str) -> object:
    return json.loads(json.dumps(client.outcome(token).raw))


def first(client: Client, pipeline: str) -> str:
    """A watch of a first record, so that the listener has begun."""
    token = client.send(pipeline, "orders", [order(0)]).token
    return client.watch(token, labels={"test": pipeline}).id


def stand_still(stack: StackState, name: str) -> None:
    with paused([process_of(stack, name)]):
        threading.Event().wait(STANDS_S)


def test_a_watch_is_told_with_what_asking_gives(
    client: Client, stack: StackState, kafka: KafkaAdmin, orders: Pipeline
) -> None:
    listener = Listener(stack, "asking")
    token = client.send(orders.name, "orders", [order(1)]).token
    watch = client.watch(token, labels={"test": "asking", "number": "1"})
    eventually(lambda: client.find_watch(watch.id).state == "reported", within_s=WITHIN_S)
    late = client.watch(token, labels={"test": "asking", "number": "2"})
    eventually(lambda: client.find_watch(late.id).state == "reported", within_s=WITHIN_S)

    events = {each.subject: each for each in told_in_kafka(stack, kafka)}
    for each in (watch, late):
        assert outcome_of(events[each.id]) == asked(client, token)
        assert events[each.id].pipeline == orders.name
    assert token not in str(events)
    found = client.find_watch(watch.id)
    assert (found.ended_as, found.event_id) == ("complete", events[watch.id].id)
    assert {each.id for each in client.watches()} >= {watch.id, late.id}
    eventually(lambda: listener.by_watch().keys() >= {late.id}, within_s=WITHIN_S)


def test_a_token_is_followed_into_a_pipeline_that_reads_on(
    client: Client, stack: StackState, orders: Pipeline
) -> None:
    audit = f"{orders.name}-audit"
    manifest = AUDIT.format(name=audit, read=f"{orders.name}.enriched")
    assert client.operation(client.apply(manifest).id, wait_s=WITHIN_S).state == "done"
    client.wait(client.send(orders.name, "orders", [order(1)]).token, timeout_s=WITHIN_S)
    assert client.operation(client.stop(audit).id, wait_s=WITHIN_S).state == "done"
    token = client.send(orders.name, "orders", [order(2), order(3)]).token
    assert client.wait(token, timeout_s=WITHIN_S).kind == "complete"
    waiting = followed(stack, token, audit)
    assert waiting["outcome"] == "in_progress"
    assert {part["pipeline"]: part["outcome"] for part in waiting["parts"]} == {
        orders.name: "complete",
        audit: "in_progress",
    }
    watch = client.watch(token, through=[audit])
    with pytest.raises(Invalid, match="reads nothing that"):
        client.watch(token, through=[orders.name])
    assert client.find_watch(watch.id).state == "open"
    client.start(audit)
    eventually(lambda: client.find_watch(watch.id).state == "reported", within_s=WITHIN_S)
    assert client.find_watch(watch.id).ended_as == "complete"
    assert {2, 3} <= {*numbers_in(stack, f"{audit}.out")}
    complete = followed(stack, token, audit)
    assert complete["outcome"] == "complete"
    assert [stage["stage"] for stage in complete["parts"][1]["stages"]] == ["keep"]


def followed(stack: StackState, token: str, *through: str) -> dict[str, Any]:
    asked = f"{stack.url}/v1/tokens/{token}?through={','.join(through)}"
    with urllib.request.urlopen(asked, timeout=WITHIN_S) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def test_every_watch_is_told_once_through_faults_of_all_parts(
    client: Client, stack: StackState, kafka: KafkaAdmin, apply_orders: Apply
) -> None:
    """The listener hears each once, too, whatever becomes of its connection."""
    pipeline = apply_orders()
    listener = Listener(stack, pipeline.name)
    eventually(lambda: first(client, pipeline.name) and listener.events, within_s=WITHIN_S)
    faults = [
        lambda: kill_services(stack, ["status"]),
        lambda: kill_services(stack, ["token_tracker"]),
        lambda: kill_services(stack, ["ingress"]),
        lambda: redis.Redis.from_url(stack.redis).flushall(),
        lambda: stand_still(stack, "kafka"),
        lambda: kill_services(stack, ["status", "token_tracker", "ingress"]),
    ]
    DICE.shuffle(faults)
    tokens: dict[str, str] = {}
    for turn, fault in enumerate(faults):
        breaking = threading.Thread(target=fault)
        for number in range(SENT // len(faults)):
            if number == 5:
                breaking.start()
            token = client.send(pipeline.name, "orders", [order(100 * turn + number)]).token
            for _ in range(DICE.randrange(1, 4)):
                tokens[client.watch(token, labels={"test": pipeline.name}).id] = token
        breaking.join()
    await_ready(stack)
    eventually(lambda: all(each.reported_at for each in client.watches()), within_s=WITHIN_S)

    told = told_in_kafka(stack, kafka)
    events = Counter(each.subject for each in told)
    assert {each: events[each] for each in tokens} == dict.fromkeys(tokens, 1)
    eventually(lambda: listener.by_watch().keys() >= tokens.keys(), within_s=WITHIN_S)
    assert [each for each in tokens if len(listener.by_watch()[each]) > 1] == []
    for each in listener.events:
        if each.subject in tokens:
            assert outcome_of(each) == asked(client, tokens[each.subject])


def test_what_happens_to_a_pipeline_is_told(
    client: Client, stack: StackState, kafka: KafkaAdmin, apply_orders: Apply
) -> None:
    pipeline = apply_orders()
    token = client.send(pipeline.name, "orders", [order(1), order(2)]).token
    outcome = token.wait(timeout_s=WITHIN_S)
    client.stop(pipeline.name, wait_s=10)

    def told() -> list[StatusEvent]:
        found = told_in_kafka(stack, kafka)
        return [each for each in found if each.pipeline == pipeline.name]

    def phases() -> list[object]:
        return [e.data["phase"] for e in told() if e.type == EventType.PIPELINE_PHASE]

    eventually(lambda: phases()[-1:] == ["Stopped"], within_s=WITHIN_S)
    assert phases() == ["Starting", "Running", "CheckpointStopping", "Stopped"]
    commits = [each for each in told() if each.type == EventType.STAGE_COMMITTED]
    assert len({each.id for each in commits}) == len(commits), "what is said again is told once"
    assert {each.stage for each in commits} == {each.stage for each in outcome.stages}
    snapshots = [str(number) for number in outcome.iceberg_snapshots.values()]
    assert snapshots
    shown = str([each.data["version"] for each in commits])
    assert all(f"'iceberg_snapshot_id': '{number}'" in shown for number in snapshots)


@contextmanager
def receiver(secret: str) -> Iterator[tuple[str, list[str]]]:
    """The example, as a process; its URL, and what it has printed."""
    with subprocess.Popen(
        [sys.executable, str(RECEIVER), "0"],
        env={**os.environ, "WAYBILL_WEBHOOK_SECRET": secret},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        printed: list[str] = []
        reading = threading.Thread(target=lambda: printed.extend(process.stdout or ()))
        reading.start()
        try:
            yield url, printed
        finally:
            process.kill()
            reading.join()


def test_an_event_comes_to_a_webhook_signed_and_again_when_it_is_asked_for(
    client: Client, stack: StackState, orders: Pipeline
) -> None:
    secret = new_secret()
    token = client.send(orders.name, "orders", [order(1)]).token
    labels = {"test": "webhook"}
    with receiver(secret) as (url, printed):
        watch = client.watch(token, labels=labels, webhook=url, secret=secret)
        other = client.watch(token, labels=labels, webhook=url)
        eventually(lambda: client.find_watch(watch.id).state == "delivered", within_s=WITHIN_S)
        eventually(lambda: len(printed) >= 2, within_s=WITHIN_S)
        assert f"waybill.token.final {watch.id} complete\n" in printed
        assert "refused: no signature is by this secret\n" in printed
        hook = client.find_watch(other.id).webhook
        assert hook is not None
        assert (hook.state, hook.last_error, hook.url) == ("due", "it answered 401", url)
        assert client.redeliver(watch.id).state == "reported"
        eventually(lambda: client.find_watch(watch.id).state == "delivered", within_s=WITHIN_S)
        assert printed.count(f"waybill.token.final {watch.id} complete\n") == 1
    client.redeliver(watch.id)
    eventually(lambda: _failed_once(client, watch.id), within_s=WITHIN_S)
    kill_services(stack, ["status"])
    await_ready(stack)
    with pytest.raises(Invalid, match="not at a public address"):
        client.watch(token, webhook="https://10.0.0.1/")
    assert client.unwatch(watch.id).state == "closed"


def _failed_once(client: Client, watch: str) -> bool:
    hook = client.find_watch(watch).webhook
    return hook is not None and hook.state == "due" and hook.last_error is not None
