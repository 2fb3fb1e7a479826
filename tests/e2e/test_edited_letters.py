"""Dead letters whose record a person edits: it is processed once, in place of the one that died."""

import json
from collections.abc import Iterator
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from e2e.moments import kill_driver
from e2e.test_replays import WAIT_S, Mended, only_dead
from e2e.waiting import eventually
from waybill import Client, Conflict, Invalid
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end


@pytest.fixture(scope="module")
def pipeline(client: Client, stack: StackState, kafka: KafkaAdmin) -> Iterator[Mended]:
    made = Mended(client, stack, kafka)
    yield made
    client.delete(made.name)


def order(number: int, amount: object) -> bytes:
    return json.dumps({"order_id": number, "amount": amount}).encode()


def died(pipeline: Mended, number: int, amount: int) -> str:
    """Return the id of the letter of such an order."""
    found = only_dead(pipeline.outcome(pipeline.send(number, amount)))
    assert found.id is not None
    return found.id


def test_an_edited_record_gives_its_row_once_though_the_driver_is_killed(
    pipeline: Mended, client: Client, stack: StackState
) -> None:
    letter = died(pipeline, 1, 5)  # the rule asks for 10
    with pytest.raises(Invalid, match="amount"):
        client.replay(pipeline.name, [letter], edited={"value": order(1, "many")})
    done = client.replay(pipeline.name, [letter], edited={"value": order(1, 50)})
    kill_driver(stack, str(client.pipeline(pipeline.name).uid))
    assert pipeline.outcome(done.token).kind == "complete"
    same = client.replay(pipeline.name, [letter], edited={"value": order(1, 50)})
    assert (same.token, same.already) == (done.token, 1)
    with pytest.raises(Conflict, match="with another edit"):
        client.replay(pipeline.name, [letter], edited={"value": order(1, 20)})
    rows = [json.loads(m.value() or b"") for m in read_to_end(stack.kafka, out(pipeline), [0])]
    assert [(row["order_id"], row["amount"]) for row in rows] == [(1, 50)]


def test_an_edited_record_that_dies_again_is_another_letter_with_the_edit(
    pipeline: Mended, client: Client, stack: StackState
) -> None:
    letter = died(pipeline, 2, 3)
    again = only_dead(
        pipeline.outcome(
            client.replay(pipeline.name, [letter], edited={"value": order(2, 4)}).token
        )
    )
    assert again.id not in {None, letter}
    values = [m.value() for m in read_to_end(stack.kafka, f"{pipeline.topic}.dlq", [0])]
    assert values[-2:] == [order(2, 3), order(2, 4)]


def test_a_record_between_stages_is_edited_there(
    pipeline: Mended, client: Client, stack: StackState
) -> None:
    pipeline.ask_for(0)
    assert only_dead(pipeline.outcome(pipeline.send(7, 0))).stage == "second"
    (message,) = read_to_end(stack.kafka, f"{pipeline.name}.inner.dlq", [0])
    source = int(dict(message.headers() or ())["__connect.errors.offset"] or b"")
    letter = f"{pipeline.name}.inner.dlq:0:{message.offset()}:{source}"
    done = client.replay(pipeline.name, [letter], edited={"value": order(7, 4)})
    assert done.sinks == ("second/out",)
    assert pipeline.outcome(done.token).kind == "complete"
    rows = [json.loads(m.value() or b"") for m in read_to_end(stack.kafka, out(pipeline), [0])]
    assert [row["share"] for row in rows if row["order_id"] == 7] == [25]
    first = read_to_end(stack.kafka, f"{pipeline.name}.inner", [0])
    assert [json.loads(m.value() or b"")["amount"] for m in first][-1:] == [0], "as it was"


def test_the_old_letter_shows_that_it_was_replayed_with_an_edit(
    pipeline: Mended, stack: StackState, client: Client
) -> None:
    letter = died(pipeline, 9, -1)
    client.replay(pipeline.name, [letter], edited={"value": order(9, 5)})

    def shown() -> bool:
        path = f"{stack.url}/v1/pipelines/{pipeline.name}/dead-letters/{quote(letter, safe='')}"
        with urlopen(path, timeout=WAIT_S) as answer:
            found = json.load(answer)
        return bool(found["replayed_as"] and found["replayed_as"]["edited"])

    eventually(shown, within_s=WAIT_S)


def out(pipeline: Mended) -> str:
    return f"{pipeline.name}.out"
