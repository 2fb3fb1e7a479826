"""Requests to replay dead letters, and what is said of their tokens.

Each grave is replayed once at most. So, without rewinds, no sink ever gets a row twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from sim.clients import Ingress, Status
from sim.contents import Contents
from sim.effects import effects_of_letter
from sim.graves import Grave
from sim.log import Cluster
from sim.replay_log import REPLAYS_ID
from sim.sinks import Storage
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import TokenRefused
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.replays import LetterReplay
from waybill_shared.contract.slots import key_of, stage_key
from waybill_shared.contract.tokens import Part, pipeline_id
from waybill_shared.contract.vectors import record_spans
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.judgements import FINAL
from waybill_status.core.outcomes.outcome import Outcome

AT_ONCE: Final = 4
GONE: Final = 0.1
"""So many letters go before a driver reads them."""


class Around(Protocol):
    cluster: Cluster
    storage: Storage
    dice: Random
    ingress: Ingress
    status: Status

    def newest(self, uid: str) -> PipelineRecord: ...

    def say(self, text: str) -> None: ...


@dataclass(slots=True)
class ReplayToken:
    uid: str
    text: str
    generation: int
    offsets: tuple[int, ...]
    """Of its messages."""
    final: OutcomeKind | None = None


class ReplayTokens:
    def __init__(self, world: Around, report: Callable[[str, str], None]) -> None:
        self.all: list[ReplayToken] = []
        self._world = world
        self._report = report
        self._contents = Contents(world.cluster, world.storage)

    def ask_for(self, record: PipelineRecord) -> None:
        """Replay some letters of a pipeline that were not replayed before."""
        storage, dice = self._world.storage, self._world.dice
        mine = [g for g in storage.graves.all if g.uid == record.pipeline_uid]
        fresh = [(g, sinks) for g in mine if (sinks := self._lacking(record, g))]
        if not fresh:
            return
        chosen = dice.sample(fresh, min(len(fresh), dice.randint(1, AT_ONCE)))
        written = [(self._write(record, grave, sinks), sinks) for grave, sinks in chosen]
        storage.replays.append_answer()
        parts = [
            Part(
                pipeline_id=pipeline_id(record.tenant, record.pipeline_uid),
                generation=record.generation,
                spans=record_spans((REPLAYS_ID, 0, at) for at, into in written if into == sinks),
                into=sinks,
            )
            for sinks in sorted({sinks for _, sinks in written})
        ]
        offsets = tuple(offset for offset, _ in written)
        self._world.say(f"replay {len(self.all)} of {offsets}: {[sinks for _, sinks in written]}")
        sealed = self._world.ingress.seal(parts, tenant=DEFAULT_TENANT)
        self.all.append(ReplayToken(record.pipeline_uid, sealed.token, record.generation, offsets))

    def ask(self, token: ReplayToken) -> bool:
        """Return True if its outcome is final now."""
        outcome = self._world.status.ask(token.text)
        if isinstance(outcome, TokenRefused):
            self._report("I10", f"the token of a replay of {token.uid} is refused")
            return False
        self._check(token, outcome)
        return outcome.final

    def ask_some(self) -> None:
        for _ in range(min(2, len(self.all))):
            self.ask(self._world.dice.choice(self.all))

    def unfinished(self) -> list[ReplayToken]:
        return [token for token in self.all if token.final is None]

    def all_ended(self) -> bool:
        """Ask for all once more: a final outcome must still be said."""
        ended = [self.ask(token) for token in self.all]
        return all(ended)

    def check_end(self) -> None:
        """I2: each has its end when all is calm."""
        for token in self.unfinished():
            self._report("I2", f"the replay of {token.offsets} in {token.uid} has no end")

    def _lacking(self, record: PipelineRecord, grave: Grave) -> tuple[str, ...]:
        """Return the keys of the sinks that lack it; none if nothing is left that does."""
        storage = self._world.storage
        stage = next((s for s in record.stages if stage_key(s) == grave.stage), None)
        if stage is None or grave in storage.replays.replayed:
            return ()
        keys = {key_of(stage, s) for s in stage.sinks}
        if grave.sink is not None:
            return tuple({grave.sink} & keys)
        if grave.place.topic_id == REPLAYS_ID:
            return tuple(sorted(keys & set(storage.replays.asked[grave.place.offset].sinks)))
        return tuple(sorted(_begun(stage, grave)))

    def _write(self, record: PipelineRecord, grave: Grave, sinks: tuple[str, ...]) -> int:
        replays = self._world.storage.replays
        replays.replayed.add(grave)
        source = replays.source_of(grave.place)
        number = self._world.storage.graves.all.index(grave)
        asked = LetterReplay(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            at=0,
            stage=grave.stage,
            sinks=sinks,
            letter=LetterId(topic="dead", partition=0, offset=number, source=source.offset),
            letter_topic_id="dead",
            topic=self._world.cluster.incarnations[source.topic_id].name,
            topic_id=source.topic_id,
            partition=source.partition,
            size=1,
        )
        if self._world.dice.random() < GONE:
            replays.gone.add(asked.letter)
        return replays.append(asked, grave.row)

    def _check(self, token: ReplayToken, outcome: Outcome) -> None:
        kind = outcome.outcome
        if token.final is not None and kind in FINAL and kind != token.final:
            self._report("I3", f"a replay that was {token.final} is {kind}")
        if kind in FINAL:
            token.final = kind
        if kind == OutcomeKind.COMPLETE:
            self._check_complete(token)

    def _check_complete(self, token: ReplayToken) -> None:
        """I1: all that its letters lead to is there."""
        record, replays = self._world.newest(token.uid), self._world.storage.replays
        for offset in token.offsets:
            asked = replays.asked[offset]
            row = self._world.cluster.incarnations[REPLAYS_ID].partitions[0].entries[offset].row
            assert row is not None
            for stage, sink, rows in effects_of_letter(record, token.generation, asked, row):
                missing = rows - self._contents.visible(token.uid, stage, sink)
                if missing:
                    detail = f"the replay of {offset} is complete, and {sink.name} lacks {missing}"
                    self._report("I1", detail)


def _begun(stage: StageDefinition, grave: Grave) -> Iterator[str]:
    """Yield the sinks that the stage had when the record died, and that had begun before it."""
    for sink in stage.sinks:
        base = sink.bases.get(grave.place[:2], 0)
        if sink.since <= grave.generation and base <= grave.place.offset:
            yield key_of(stage, sink)
