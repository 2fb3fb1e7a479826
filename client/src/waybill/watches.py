"""Watches and the events that they end with, as values. Never talks to anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from waybill.fields import Fields, no_json
from waybill.outcomes import Outcome

TOKEN_FINAL: Final = "waybill.token.final"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchWebhook:
    """The address to which the event of a watch is sent.

    `state`: due, delivered or failed; None before the event is written. `url` is without its query.
    """

    url: str
    state: str | None
    attempts: int
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_error: str | None

    @classmethod
    def read(cls, fields: Fields) -> "WatchWebhook":
        return cls(
            url=fields.text("url"),
            state=fields.text_or_none("state"),
            attempts=fields.whole("attempts"),
            next_attempt_at=fields.moment_or_none("next_attempt_at"),
            last_attempt_at=fields.moment_or_none("last_attempt_at"),
            last_error=fields.text_or_none("last_error"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch of a token.

    `state`: open, `reported` (its event is written), delivered, failed or closed. `ended_as`: the
    outcome in the event, or expired. `secret`: by which the receiver checks the signature, if this
    call made it.
    """

    id: str
    state: str
    labels: Mapping[str, str]
    created_at: datetime | None
    expires_at: datetime | None
    reported_at: datetime | None
    event_id: str | None
    ended_as: str | None
    webhook: WatchWebhook | None = None
    secret: str | None = field(default=None, repr=False)
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, *, secret: str | None = None) -> "Watch":
        webhook = fields.object_or_none("webhook")
        labels = fields.mapping_or_none("labels") or {}
        return cls(
            id=fields.text("id"),
            state=fields.text("state"),
            labels={name: str(value) for name, value in labels.items()},
            created_at=fields.moment_or_none("created_at"),
            expires_at=fields.moment_or_none("expires_at"),
            reported_at=fields.moment_or_none("reported_at"),
            event_id=fields.text_or_none("event_id"),
            ended_as=fields.text_or_none("ended_as"),
            webhook=None if webhook is None else WatchWebhook.read(webhook),
            secret=secret,
            raw=fields.raw,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A CloudEvent of `waybill.status`; its `id` is the same however often it comes.

    `position`: `events(after=…)` continues after it. `outcome`: of a token that is final.
    """

    id: str
    type: str
    subject: str
    time: datetime | None
    pipeline: str | None
    stage: str | None
    data: Mapping[str, object]
    position: str | None
    outcome: Outcome | None
    raw: Mapping[str, object] = field(default_factory=no_json, repr=False, compare=False)

    @classmethod
    def read(cls, fields: Fields, position: str | None) -> "Event":
        data = fields.object_or_none("data")
        outcome = None if data is None else data.object_or_none("outcome")
        return cls(
            id=fields.text("id"),
            type=fields.text("type"),
            subject=fields.text("subject"),
            time=fields.moment_or_none("time"),
            pipeline=fields.text_or_none("pipeline"),
            stage=fields.text_or_none("stage"),
            data={} if data is None else data.raw,
            position=position,
            outcome=None if outcome is None else Outcome.read(outcome),
            raw=fields.raw,
        )
