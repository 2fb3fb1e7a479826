"""PATCH and DELETE of `/offsets`: a command says where the next run begins, or takes that back."""

import pytest
from fastapi.testclient import TestClient

from unit.ingress.fakes import FakeKafka, FakeMint
from waybill_shared.contract.beginnings import InputOffset
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import SetOffsets
from waybill_shared.contract.events import Command

PATH = "/v1/pipelines/orders/offsets"
HERE = InputOffset(topic="orders.in", partition=0, offset=120)


@pytest.mark.parametrize(
    ("sent", "query", "body"),
    [
        ({"from": "earliest"}, "", SetOffsets(start_from="earliest")),
        ({"from": "1 minute ago"}, "", SetOffsets(at=FakeMint.now - 60_000)),
        ({"from": "2026-11-01T00:00:00Z"}, "", SetOffsets(at=1_793_491_200_000)),
        (
            {"from": "orders.in[0]=120", "stage": "enrich"},
            "?yes=true",
            SetOffsets(offsets=(HERE,), stage="enrich", confirmed=True),
        ),
    ],
)
def test_it_says_where_to_begin_as_restart_does(
    client: TestClient, kafka: FakeKafka, sent: dict[str, str], query: str, body: SetOffsets
) -> None:
    answer = client.patch(f"{PATH}{query}", json=sent)
    assert (answer.status_code, answer.json()["action"]) == (202, "set_offsets")
    (written,) = kafka.written
    assert decode(Command, written.value).body == body


def test_delete_takes_all_of_it_back(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.delete(PATH)
    assert (answer.status_code, answer.json()["action"]) == (202, "set_offsets")
    (written,) = kafka.written
    assert decode(Command, written.value).body == SetOffsets()
    assert client.delete("/v1/pipelines/other/offsets").status_code == 404


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("{}", "from: is missing"),
        ('{"from": "noon"}', "from: 'noon' is none of: earliest"),
        ('{"from": ""}', "from: '' is none of"),
        ('{"from": 7}', "from"),
        ('{"form": "latest"}', "did you mean 'from'?"),
        ("[]", ""),
    ],
)
def test_what_says_no_beginning_is_refused(
    client: TestClient, kafka: FakeKafka, body: str, why: str
) -> None:
    answer = client.patch(PATH, content=body)
    assert answer.status_code == 422
    assert why in answer.text
    assert kafka.written == []
