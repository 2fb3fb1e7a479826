"""A pipeline that reads what the token's own writes, and who asks through it."""

from collections.abc import Sequence
from dataclasses import replace

from builders import make_input, make_sink, make_stage
from unit.status.slots import COPY, KEY, offsets, progress, reading, record, slot, span, token
from unit.status.worlds import World
from waybill_shared.access.authentication import ANYONE, DEFAULT_TENANT
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import Definition, PipelineRecord, StageDefinition
from waybill_shared.contract.slots import Progress, SinkState, Slot
from waybill_shared.contract.token_views import TokenView, WantedView
from waybill_shared.contract.tokens import Token
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.views import PipelineKey

COPIES = "c"
"""The id of the topic of sink `copy`, which `audit` reads."""
VAULT, LIST = "keep/vault@1", "keep/list@1"
MINE = token(span(5, 10))


def keep(
    read: str = COPIES, written: str = "v", *, name: str = "vault", since: int = 1
) -> StageDefinition:
    source = replace(make_input("in", topic_id=read, bases=()), topic=read)
    sink = make_sink(name, topic_id=written, since=since)
    return make_stage("keep", inputs=(source,), sinks=(sink,))


def other(name: str, *defined: StageDefinition, generation: int = 1) -> PipelineRecord:
    return replace(record(name, uid=f"uid-{name}"), stages=defined, generation=generation)


def key(name: str) -> PipelineKey:
    return (DEFAULT_TENANT, f"uid-{name}")


def content(
    name: str, end: int, *defined: StageDefinition, read: str = COPIES, generation: int = 1
) -> Slot:
    return Slot(
        tenant=DEFAULT_TENANT,
        pipeline_uid=f"uid-{name}",
        generation=generation,
        definition=Definition(name=name, deleted=False, stages=defined or (keep(read),)),
        sinks={VAULT: SinkState(reached=offsets(end, topic_id=read))},
    )


def step(
    number: int,
    end: int,
    written: int | None,
    *,
    before: int = 0,
    sink: str = COPY,
    topic_id: str = COPIES,
) -> Progress:
    """Batch `number`, up to whose end so much is written to the topic."""
    outputs = None if written is None else offsets(written, topic_id=topic_id)
    made = progress(number, end, before=before, sink=sink)
    return replace(made, outputs=outputs, number=number)


FIRST, *OF_IT, AFTER = (
    step(0, 5, 3),
    step(1, 8, 7, before=5),
    step(2, 10, 9, before=8),
    step(3, 20, 30, before=10),
)
BATCHES = (FIRST, *OF_IT, AFTER)
"""The rows of the token stand from 3 to 9."""


class Legs:
    def __init__(self, world: World, *others: PipelineRecord) -> None:
        self.world = world
        for each in others or (other("audit", keep()),):
            world.owners.directory.accept(each)
        self.put(KEY, slot(enriched=(20,), copy=(20,), lake=(0,)), version=1)
        self.batches(*BATCHES)

    def put(self, whose: PipelineKey, what: Slot, *, version: int) -> None:
        self.world.store.readings[whose] = reading(what, version=version)
        self.world.store.changes.put_nowait(whose)

    def audit(self, end: int, *, version: int = 1) -> None:
        self.put(key("audit"), content("audit", end), version=version)
        self.world.store.histories[key("audit"), VAULT] = [progress(1, end, sink=VAULT)]

    def batches(self, *batches: Progress) -> None:
        self.world.store.histories[KEY, COPY] = [*batches]

    async def view(self, *names: str, sinks: Sequence[str] = (), of: Token = MINE) -> TokenView:
        wanted = WantedView(through=names or ("audit",), sinks=tuple(sinks))
        (found,) = await self.world.tokens.settle(ANYONE, [of], wanted)
        if isinstance(found, Refusal):
            raise found
        return found

    async def ask(self, asked: TokenView | None = None, *, of: Token = MINE) -> Outcome:
        (outcome,) = await self.world.tokens.now([of], asked or await self.view())
        assert isinstance(outcome, Outcome)
        return outcome

    async def kind(self, asked: TokenView | None = None) -> str:
        outcome = await self.ask(asked)
        return outcome.reason or outcome.outcome
