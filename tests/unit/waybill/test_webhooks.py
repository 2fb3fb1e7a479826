"""Whether a request is from Waybill: checked against another implementation of the signature."""

import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook as Independent

from watch_builders import make_event
from waybill import Unusable, webhooks
from waybill.webhooks import NotFromWaybill, new_secret, verify
from waybill_shared.contract.codec import to_json

NOW_S = 1_795_251_600
SECRET = new_secret()
BODY = to_json(make_event())


def headers(body: str = BODY, *, secret: str = SECRET, at: int = NOW_S) -> dict[str, str]:
    signature = Independent(secret).sign("e.final", datetime.fromtimestamp(at, UTC), body)
    return {"Webhook-Id": "e.final", "Webhook-Timestamp": str(at), "Webhook-Signature": signature}


@pytest.mark.parametrize("body", [BODY, BODY.encode()])
def test_an_event_is_read(body: str | bytes) -> None:
    event = verify(headers(), body, SECRET, now_s=NOW_S + 299)
    assert (event.id, event.type) == (make_event().id, "waybill.token.final")
    assert event.outcome is not None
    assert event.outcome.kind == "complete"


def test_one_of_several_signatures_is_enough() -> None:
    sent = headers()
    sent["Webhook-Signature"] = f"v1a,xyz v1,AAAA {sent['Webhook-Signature']}"
    assert verify(sent, BODY, SECRET, now_s=NOW_S).id == make_event().id


@pytest.mark.parametrize(
    ("changed", "body", "now_s", "said"),
    [
        ({}, BODY + " ", NOW_S, "no signature is by this secret"),
        (headers(secret=new_secret()), BODY, NOW_S, "no signature is by this secret"),
        ({"Webhook-Id": "other"}, BODY, NOW_S, "no signature is by this secret"),
        ({"Webhook-Timestamp": str(NOW_S + 1)}, BODY, NOW_S, "no signature is by this secret"),
        ({"Webhook-Timestamp": "soon"}, BODY, NOW_S, "no number"),
        ({"Webhook-Signature": ""}, BODY, NOW_S, "missing"),
        ({"Webhook-Signature": "v1,\u00e4"}, BODY, NOW_S, "no signature is by this secret"),
        ({}, BODY, NOW_S + 301, "301 s ago"),
        ({}, BODY, NOW_S - 301, "-301 s ago"),
        (headers("{}"), "{}", NOW_S, "no event"),
        (headers("x"), "x", NOW_S, "no event"),
    ],
)
def test_all_else_is_not_from_waybill(
    changed: dict[str, str], body: str, now_s: int, said: str
) -> None:
    with pytest.raises(NotFromWaybill, match=said):
        verify({**headers(), **changed}, body, SECRET, now_s=now_s)


def test_the_clock_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "_now_s", lambda: NOW_S + 10.0)
    assert json.loads(BODY)["id"] == verify(headers(), BODY, SECRET).id


def test_a_secret_that_is_none_is_a_mistake_of_the_receiver() -> None:
    with pytest.raises(Unusable, match="whsec_"):
        verify(headers(), BODY, "whsec_\u00e4!")
