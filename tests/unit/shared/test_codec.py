"""Messages on the wire: what comes back is what was sent, and anything else is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_commit, make_fact, make_fence, make_record, make_snapshot
from message_builders import (
    make_answer,
    make_beat,
    make_claim,
    make_command,
    make_letter_replay,
    make_lifecycle,
    make_progress,
    make_replay,
    make_reply,
)
from strategies import patiently
from watch_builders import make_delivery, make_event, make_watch, make_webhook
from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage
from waybill_shared.contract.events import Fact, Message, PipelineRecord
from waybill_shared.contract.replays import ReplayMessage
from waybill_shared.contract.requests import RequestClaim

MESSAGES: list[Message] = [
    make_fact(),
    make_fact(make_commit(outputs={("A", 0): 7}, version=6150272777574668285)),
    make_record(),
    make_command("apply"),
    make_command("stop"),
    make_reply("done"),
    make_reply("failed"),
    make_lifecycle(),
    make_lifecycle(kind="heartbeat"),
    make_beat(),
    make_fence(),
    make_snapshot("{}"),
    ReplayMessage(body=make_replay()),
    ReplayMessage(body=make_letter_replay()),
    make_claim(),
    make_answer(),
    make_progress(),
    make_watch(),
    replace(make_watch(), webhook=make_webhook(), redeliveries=1),
    make_delivery(),
    make_event(),
]
RAW = codec.encode(make_fact(make_commit(outputs={("A", 0): 7})))


def label(message: Message) -> str:
    return type(message).__name__


@pytest.mark.parametrize("message", MESSAGES, ids=label)
def test_message_survives_the_wire(message: Message) -> None:
    assert codec.decode(type(message), codec.encode(message)) == message


@pytest.mark.parametrize("message", MESSAGES, ids=label)
def test_message_survives_as_json(message: Message) -> None:
    assert codec.from_json(type(message), codec.to_json(message)) == message


def test_messages_have_headers_of_their_own() -> None:
    binary = [message for message in MESSAGES if type(message) not in codec.AS_JSON]
    headers = {type(message): codec.encode(message)[: codec.HEADER_BYTES] for message in binary}
    assert len(set(headers.values())) == len(headers) == len(codec.TOPIC_OF) - len(codec.AS_JSON)
    assert all(header.startswith(codec.MARKER) for header in headers.values())


def test_message_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="not a PipelineRecord: the first 10 bytes are c301"):
        codec.decode(PipelineRecord, RAW)


def test_a_claim_with_an_id_of_another_kind_is_refused() -> None:
    raw = codec.encode(make_claim()).replace(b"c" * 32, b"C" * 32)
    with pytest.raises(InvalidMessage, match="is no id"):
        codec.decode(RequestClaim, raw)


def test_every_truncation_is_refused() -> None:
    for length in range(len(RAW)):
        with pytest.raises(InvalidMessage):
            codec.decode(Fact, RAW[:length])


def test_bytes_behind_the_message_are_refused() -> None:
    with pytest.raises(InvalidMessage, match="1 byte"):
        codec.decode(Fact, RAW + b"\0")


@patiently
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(body: bytes) -> None:
    check_decodes_or_refuses(RAW[: codec.HEADER_BYTES] + body)


@patiently
@given(st.integers(codec.HEADER_BYTES, len(RAW) - 1), st.integers(1, 255))
def test_damage_is_refused_or_is_another_message(at: int, damage: int) -> None:
    damaged = bytearray(RAW)
    damaged[at] ^= damage
    check_decodes_or_refuses(bytes(damaged))


def check_decodes_or_refuses(raw: bytes) -> None:
    try:
        message = codec.decode(Fact, raw)
    except InvalidMessage:
        return
    assert codec.encode(message)[: codec.HEADER_BYTES] == raw[: codec.HEADER_BYTES]
