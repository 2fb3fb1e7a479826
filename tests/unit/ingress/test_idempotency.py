"""A request with a key is carried out once, in any order of what several processes do."""

import asyncio
import hashlib
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from unit.ingress.fakes import at_once
from unit.ingress.repeating import DAY_MS, Process, World
from waybill_ingress.app.idempotency import IdempotentRequests
from waybill_ingress.app.idempotency_ports import HttpAnswer
from waybill_ingress.app.ports import Log
from waybill_ingress.core.keys import KeyedRequest
from waybill_ingress.core.requests import OwnedKey
from waybill_ingress.core.rows import Record
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.requests import RequestClaim

PATIENCE_MS = 30_000
SEEDS = 300
KEYS = 3
ASKED_MAX = 2_000


def wanted(who: str, request: str = "same") -> KeyedRequest:
    return KeyedRequest(who=hashed(who), request=hashed(request), where="/")


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def repeats_of(process: Process) -> IdempotentRequests:
    return IdempotentRequests(process, process, process, patience_ms=PATIENCE_MS)


class Client:
    """Sends a request again and again until it is answered, and notes each answer."""

    def __init__(
        self, world: World, ingresses: list[tuple[Process, IdempotentRequests]], key: str
    ) -> None:
        self._world = world
        self._ingresses = ingresses
        self._key = key
        self._left: list[asyncio.Task[HttpAnswer]] = []
        self.answers: list[bytes] = []

    async def send(self) -> None:
        for _ in range(ASKED_MAX):
            alive = [each for each in self._ingresses if not each[0].killed]
            process, repeats = self._world.dice.choice(alive)
            asking = asyncio.create_task(self._ask(repeats))
            patience = self._world.dice.choice((20, 200, 20_000))
            while not (asking.done() or process.killed or not patience):
                patience -= 1
                await asyncio.sleep(0)
            if not asking.done():
                self._left.append(asking)  # nobody waits for it, but it may go on
                continue
            try:
                self.answers.append(asking.result().body)
            except (Refusal, Retryable):
                self._world.now_ms += PATIENCE_MS // 30
                continue
            break
        else:
            raise AssertionError("it is never answered")
        for asking in self._left:
            asking.cancel()

    async def _ask(self, repeats: IdempotentRequests) -> HttpAnswer:
        raise NotImplementedError


class RecordsClient(Client):
    async def _ask(self, repeats: IdempotentRequests) -> HttpAnswer:
        async def act(log: Log) -> HttpAnswer:
            await self._maybe_refused()
            body = f"{next(self._world.ids)}".encode()
            await log.append(self._key, [Record(0, None, body)])
            await self._maybe_refused()
            return HttpAnswer(status=200, headers={}, body=body)

        return await repeats.once(wanted(self._key), act)

    async def _maybe_refused(self) -> None:
        for _ in range(self._world.dice.randrange(20)):
            await asyncio.sleep(0)
        if self._world.dice.random() < 0.15:
            raise Refusal(Slug.INVALID, "no")


class CommandClient(Client):
    async def _ask(self, repeats: IdempotentRequests) -> HttpAnswer:
        async def begin(log: Log) -> str:
            operation = f"{next(self._world.ids)}"
            await log.append(self._key, [Record(0, None, operation.encode())])
            return operation

        async def answer(operation: str) -> HttpAnswer:
            await asyncio.sleep(0)
            if self._world.dice.random() < 0.2:
                raise Retryable("nobody tells")
            return HttpAnswer(status=202, headers={}, body=operation.encode())

        return await repeats.operation(wanted(self._key), begin, answer, at_once)


@pytest.mark.parametrize("kind", [RecordsClient, CommandClient])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_it_is_written_once_and_answered_the_same(
    seed: int, kind: type[Client]
) -> None:
    world = World(seed)
    processes = [world.process() for _ in range(3)]
    ingresses = [(process, repeats_of(process)) for process in processes]
    clients = [kind(world, ingresses, f"key-{n % KEYS}") for n in range(3 * KEYS)]

    async def faults() -> None:
        for _ in range(2):
            for _ in range(world.dice.randrange(200)):
                await asyncio.sleep(0)
            hit = world.dice.choice(processes[1:])
            hit.slow, hit.killed = not hit.slow, world.dice.random() < 0.5

    async def play() -> None:
        await asyncio.gather(faults(), *(client.send() for client in clients))

    asyncio.run(play())
    written = dict(world.records)
    assert Counter(key for key, _ in world.records) == dict.fromkeys(written, 1)
    for number, client in enumerate(clients):
        assert client.answers == [written[f"key-{number % KEYS}"]]


async def repeatedly(
    ask: Callable[[], Awaitable[HttpAnswer]], *, also: type[Exception] = Retryable
) -> HttpAnswer:
    """As a client does that is told to try again."""
    for _ in range(20):
        try:
            return await ask()
        except (Retryable, also):
            continue
    raise AssertionError("it is never answered")


def run(
    repeats: IdempotentRequests, key: str, request: str = "same", *, refused: bool = False
) -> HttpAnswer:
    async def act(log: Log) -> HttpAnswer:
        await log.append(key, [Record(0, None, b"row")])
        if refused:
            raise Refusal(Slug.INVALID, "no")
        return HttpAnswer(status=200, headers={"a": "b"}, body=uuid.uuid4().bytes)

    return asyncio.run(repeatedly(lambda: repeats.once(wanted(key, request), act)))


class Carried:
    """What is carried out in the end: `faults` come first, and `ids` are those of all tries."""

    def __init__(self, *faults: Exception) -> None:
        self._faults = [*faults]
        self.ids: list[str] = []

    async def act(self, id: str, resumed: bool) -> HttpAnswer:
        assert resumed is bool(self.ids)
        self.ids.append(id)
        if self._faults:
            raise self._faults.pop(0)
        return HttpAnswer(status=200, headers={}, body=b"done")


NOBODY_KNOWS = Retryable("nobody knows")


def test_a_key_that_is_old_is_new_again() -> None:
    world = World()
    one, other = world.process(), world.process()
    first, late = repeats_of(one), repeats_of(other)
    assert not run(first, "k").replayed
    assert run(first, "k").replayed
    world.now_ms += DAY_MS - 1
    assert run(late, "k").replayed
    world.now_ms += 2
    assert not run(late, "k", "another request").replayed
    assert run(first, "k", "another request").replayed
    with pytest.raises(Refusal) as caught:
        run(first, "k")
    assert caught.value.slug is Slug.KEY_REUSED
    assert len(world.records) == 2


def test_beyond_their_number_the_oldest_keys_are_new_again_for_all() -> None:
    world = World()
    small, large = world.process(keys_max=2), world.process()
    few, many = repeats_of(small), repeats_of(large)
    for key in ("a", "b", "c"):
        world.now_ms += 1
        run(few, key)
    assert run(many, "a").replayed
    assert run(few, "c").replayed
    world.now_ms += 1
    again = run(few, "a")
    assert not again.replayed
    assert run(many, "a").body == again.body
    assert Counter(key for key, _ in world.records) == {"a": 2, "b": 1, "c": 1}


def test_what_is_refused_leaves_the_key_free() -> None:
    world = World()
    repeats = repeats_of(world.process())
    with pytest.raises(Refusal):
        run(repeats, "k", refused=True)
    assert not run(repeats, "k", "mended").replayed
    assert len(world.records) == 1


def test_who_finds_out_by_itself_is_given_one_id_for_all_tries() -> None:
    repeats, carried = repeats_of(World().process()), Carried(NOBODY_KNOWS, NOBODY_KNOWS)
    answer = asyncio.run(repeatedly(lambda: repeats.once_by_id(wanted("k"), carried.act)))
    assert answer.body == b"done"
    assert (len(carried.ids), len(set(carried.ids))) == (3, 1)


def test_a_refusal_does_not_free_a_key_for_which_something_may_have_been_done() -> None:
    refusal = Refusal(Slug.PIPELINE_BEHIND, "no")
    repeats, carried = repeats_of(World().process()), Carried(NOBODY_KNOWS, refusal)
    asyncio.run(repeatedly(lambda: repeats.once_by_id(wanted("k"), carried.act), also=Refusal))
    assert (len(carried.ids), len(set(carried.ids))) == (3, 1)


def test_no_other_request_takes_a_key_for_which_something_may_have_been_done() -> None:
    repeats, carried = repeats_of(World().process()), Carried(NOBODY_KNOWS)

    async def ask(request: str) -> HttpAnswer:
        return await repeats.once_by_id(wanted("k", request), carried.act)

    with pytest.raises(Retryable):
        asyncio.run(ask("same"))
    with pytest.raises(Refusal) as caught:
        asyncio.run(ask("another"))
    assert caught.value.slug is Slug.KEY_REUSED
    asyncio.run(repeatedly(lambda: ask("same")))
    assert (len(carried.ids), len(set(carried.ids))) == (2, 1)


def test_a_key_whose_request_was_refused_and_never_given_back_is_free_for_another() -> None:
    world = World()
    process = world.process()
    repeats = repeats_of(process)
    claim, failing = process.claim, True

    async def lossy(given: RequestClaim) -> OwnedKey | None:
        if given.released and failing:
            raise Retryable("kafka is away")
        return await claim(given)

    process.claim = lossy  # type: ignore[method-assign,assignment]
    with pytest.raises(Refusal):
        run(repeats, "k", refused=True)
    failing = False
    run(repeats, "k", "mended")
    assert len(world.records) == 1


def test_a_clock_that_is_ahead_makes_nobody_forget() -> None:
    world = World()
    right, small = world.process(), world.process(keys_max=2)
    run(repeats_of(right), "a")
    world.claims.append(replace(world.claims[0], who=hashed("x"), id=hashed("y"), at=2**50))
    for key in ("b", "c", "d"):
        world.now_ms += 1
        run(repeats_of(small), key)
    assert run(repeats_of(right), "a").replayed
    assert run(repeats_of(small), "d").replayed


def test_where_the_clock_was_put_back_a_claim_of_who_is_gone_is_taken_over() -> None:
    world = World()
    gone, other = world.process(), world.process()

    async def killed() -> None:
        async def never(log: Log) -> HttpAnswer:
            gone.killed = True
            await gone.pause()
            raise AssertionError

        asking = asyncio.create_task(repeats_of(gone).once(wanted("k"), never))
        while not gone.killed:
            await asyncio.sleep(0)
        asking.cancel()

    asyncio.run(killed())
    with pytest.raises(Refusal) as caught:
        run(repeats_of(other), "k")
    assert caught.value.slug is Slug.REQUEST_RUNNING
    world.now_ms -= DAY_MS // 2
    run(repeats_of(other), "k")
    assert len(world.records) == 1


def test_an_answer_that_another_process_has_just_given_is_waited_for() -> None:
    world = World()
    first, late = world.process(), world.process()
    late.sees = 0.0
    run(repeats_of(first), "k")
    late._see_claims(len(world.claims))
    assert run(repeats_of(late), "k").replayed
    assert len(world.records) == 1
