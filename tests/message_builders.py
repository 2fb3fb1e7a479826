"""One builder per message: commands and their replies, lifecycle, replays, requests and files."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, cast

from builders import MANIFEST, NOW, ORDERS_ID, TENANT, UID, applied
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.beginnings import Beginning
from waybill_shared.contract.commands import (
    Apply,
    ChangeBody,
    Delete,
    Pause,
    Rename,
    Rescale,
    Restart,
    Resume,
    SetOffsets,
    Start,
    Stop,
)
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.dead_letter_facts import DeadLetter
from waybill_shared.contract.dead_letters import Headers, LetterId, with_facts
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import (
    Command,
    Reply,
)
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_shared.contract.replays import LetterReplay, Replay, ReplayedLetter, ReplayPosition
from waybill_shared.contract.requests import RequestAnswer, RequestClaim
from waybill_shared.contract.slots import DeadEntry
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import Action, OperationState


def make_body(
    action: str, *, manifest: str = MANIFEST, start_from: str | None = None
) -> ChangeBody:
    if action == "apply":
        return Apply(manifest=applied(manifest))
    body = {
        "start": Start(),
        "stop": Stop(),
        "pause": Pause(),
        "resume": Resume(),
        "set_offsets": SetOffsets(start_from=cast("Beginning | None", start_from)),
        "rescale": Rescale(parallelism=4),
        "restart": Restart(start_from=cast("Beginning | None", start_from)),
        "rename": Rename(name="sales"),
        "delete": Delete(),
    }[action]
    return cast(ChangeBody, body)


def make_command(
    action: str = "start",
    *,
    id: str = "c1",
    start_from: str | None = None,
) -> Command:
    return Command(
        tenant=TENANT,
        pipeline_uid=UID,
        id=id,
        pipeline="orders",
        life=0,
        actor="ada",
        request_id="r1",
        at=NOW,
        body=make_body(action, start_from=start_from),
    )


def make_problem(message: str = "a step is wrong") -> Problem:
    return Problem(message=message, line=3, column=5, path="stages.0", hint="mend it")


def make_reply(
    state: str = "done",
    *,
    id: str = "c1",
    action: Action = Action.START,
    problem: str | None = None,
    result: str | None = None,
) -> Reply:
    return Reply(
        tenant=TENANT,
        pipeline_uid=UID,
        id=id,
        pipeline="orders",
        action=action,
        actor="ada",
        state=OperationState(state),
        generation=1,
        errors=(make_problem(),) if state == "failed" else (),
        warnings=(),
        at=NOW,
        problem=problem,
        result=result,
    )


def make_lifecycle(
    phase: str = "Running",
    *,
    kind: Literal["claim", "transition", "heartbeat"] = "transition",
    at: int = NOW,
    uid: str = UID,
    blocked_by: str | None = None,
) -> LifecycleEvent:
    return LifecycleEvent(
        tenant=TENANT,
        pipeline_uid=uid,
        pipeline="orders",
        generation=1,
        kind=kind,
        phase_from="Starting" if kind == "transition" else None,
        phase=phase,
        reason="driver runs",
        error=None,
        actor="stage_runner",
        run=3,
        attempt=0,
        next_at=None,
        at=at,
        blocked_by=blocked_by,
    )


def make_beat(*, at: int = NOW, uid: str = UID, blocked_by: str | None = None) -> Beat:
    return Beat(tenant=TENANT, pipeline_uid=uid, at=at, blocked_by=blocked_by)


def make_replayed(offset: int = 17, at: int = 40) -> ReplayedLetter:
    """The letter of the record at `offset`; `at`: the offset of its message."""
    return ReplayedLetter(
        letter=LetterId(topic="orders.in.dlq", partition=0, offset=offset, source=offset),
        letter_topic_id="D",
        sinks=("enrich/lake@1",),
        position=ReplayPosition(topic_id="P", partition=3, offset=at),
        generation=1,
        at=NOW,
    )


def make_replay(*letters: ReplayedLetter, token: str = "wb1.token") -> Replay:
    return Replay(
        tenant=TENANT,
        pipeline_uid=UID,
        at=NOW,
        request_id="r",
        token=token,
        letters=letters or (make_replayed(),),
    )


def make_letter_replay(
    offset: int = 17, *, stage: str = "enrich", sinks: tuple[str, ...] = ("lake",)
) -> LetterReplay:
    return LetterReplay(
        tenant=TENANT,
        pipeline_uid=UID,
        at=NOW,
        stage=f"{stage}@1",
        sinks=tuple(f"{stage}/{name}@1" for name in sinks),
        letter=LetterId(topic="orders.in.dlq", partition=0, offset=100 + offset, source=offset),
        letter_topic_id="D",
        topic="orders.in",
        topic_id=ORDERS_ID,
        partition=0,
        size=10,
    )


def make_letter(offset: int = 17, *, partition: int = 0, **changes: object) -> DeadLetter:
    """`changes`: by field, what is to be another."""
    letter = DeadLetter(
        topic="orders.in",
        topic_id=ORDERS_ID,
        partition=partition,
        offset=offset,
        sink=None,
        reason="malformed",
        rule=None,
        message="no number",
        dead_topic="orders.in.dlq",
        dead_partition=partition,
        dead_offset=offset,
    )
    return replace(letter, **changes)  # type: ignore[arg-type]


def make_letter_headers(changes: Mapping[str, str | None], *, own: Headers = ()) -> Headers:
    """`own` are those that its record had; `changes` are by name, as in `named.NAMES`."""
    facts: dict[str, str | None] = {
        **dict.fromkeys(named.NAMES, "x"),
        named.TOPIC: "orders.in",
        named.PARTITION: "0",
        named.UID: UID,
        named.TOPIC_ID: ORDERS_ID,
        named.STAGE_KEY: None,
        named.SINK: None,
        named.RULE: None,
        named.GENERATION: "1",
    }
    return with_facts(own, {**facts, **changes})


def make_entry(start: int, end: int | None = None, **changes: object) -> DeadEntry:
    """One record that died or, with an `end`, a range; `changes` are by field."""
    place = {"dead_topic": "orders.in.dlq", "dead_partition": 0, "dead_offset": start}
    entry = DeadEntry(
        id=f"enrich@1:{start}",
        stage="enrich@1",
        sink=None,
        topic_id=ORDERS_ID,
        partition=0,
        start=start,
        end=start + 1 if end is None else end,
        exact=end is None,
        reason="malformed",
        message="no number",
    )
    return replace(entry, **({} if end is not None else place), **changes)  # type: ignore[arg-type]


def make_claim(id: str = "c" * 32) -> RequestClaim:
    return RequestClaim(
        id=id,
        who="d" * 32,
        request="e" * 32,
        at=NOW,
        transactional_id="waybill/ingress/write/p/1",
        after="",
        root=id,
        operation="",
        forgets_before=0,
    )


def make_progress(url: str = "https://files.example/price.json?sign=x") -> ConnectorProgress:
    return ConnectorProgress(
        tenant=TENANT,
        pipeline_uid=UID,
        topic="orders.in",
        connector="prices",
        url=url,
        at=NOW,
        state="fetching",
        rows=1_000,
        records=999,
        dead=1,
        bytes=65_536,
        size=200_000,
        version='"1"',
        spans=(Span(topic_id=ORDERS_ID, partition=0, start=0, end=999),),
    )


def make_answer(claim: str = "c" * 32) -> RequestAnswer:
    return RequestAnswer(
        claim=claim,
        who="d" * 32,
        at=NOW,
        operation="",
        status=200,
        headers={"content-type": "application/json"},
        body=b"{}",
    )
