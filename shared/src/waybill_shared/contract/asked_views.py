"""Checks that what is asked of a token exists among the present sinks and pipelines."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal, invalid
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.former_names import is_meant, names_of
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import Scope
from waybill_shared.contract.token_views import ThroughSink, ThroughStep, TokenView, WantedView
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.topology import StageSink, Topology
from waybill_shared.contract.vectors import ENDLESS, Span

PLACES_MAX: Final = 4_000  # that one watch remembers
Owned = Iterable[tuple[Part, PipelineRecord]]
"""The parts of a token with their pipelines as they are now."""


class PipelinesThere(Protocol):
    """The pipelines as this process knows them now."""

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None: ...

    def former_holder(self, tenant: str, name: str) -> PipelineRecord | None: ...

    def living(self, tenant: str) -> Sequence[PipelineRecord]: ...


class _At(NamedTuple):
    """Where data is that is asked for: in a root topic of a pipeline. `into`: the keys of the sinks
    that a replay names.
    """

    uid: str
    pipeline: str
    stages: tuple[StageDefinition, ...]
    topic_id: str
    generation: int
    into: tuple[str, ...] = ()

    def awaited(self) -> list[StageSink]:
        """Return the sinks that what is asked for waits for."""
        topology = Topology(self.stages)
        if self.into:
            return topology.awaited_after(self.into, self.generation)
        return [*topology.awaited(self.topic_id, self.generation)]


def settle(
    wanted: WantedView, caller: Caller, owned: Owned, known: PipelinesThere, path: str
) -> TokenView:
    """Return the view with the pipelines that it leads through, as they are now.

    Raise Refusal if the view cannot be asked for.
    """
    if wanted.through:
        require_reader(caller)
    here = [*dict.fromkeys(at for part, record in owned for at in _places_of(part, record))]
    steps: list[ThroughStep] = []
    for name in wanted.through:
        record = known.by_name(caller.tenant, name)
        former = known.former_holder(caller.tenant, name) if record is None else None
        if former is not None and name in former.was:
            record = former
        if record is None:
            names = [each.name for each in known.living(caller.tenant)]
            raise _refuse(
                f"{path}through", f"there is no pipeline {name!r:.100}", "known pipelines", names
            )
        step, here = _enter(record, here, path)
        steps.append(step)
    if sum(len(step.led_by) + len(step.late) for step in steps) > PLACES_MAX:
        message = f"more than {PLACES_MAX} sinks and partitions lead there"
        raise _refuse(f"{path}through", message, "what may be asked for", ["fewer pipelines"])
    if wanted.sinks:
        _refuse_unknown_sinks(wanted.sinks, here, path)
    return TokenView(level=wanted.level, sinks=wanted.sinks, through=tuple(steps))


def require_reader(caller: Caller) -> None:
    """Raise Refusal if the caller lacks scope read: a token alone gives no access to other
    pipelines.
    """
    if Scope.READ in caller.scopes:
        return
    detail = "asking through other pipelines needs an API key with scope read"
    if caller.key_id is None:
        raise Refusal(Slug.KEY_MISSING, detail)
    has = sorted(caller.scopes)
    raise Refusal(Slug.SCOPE_MISSING, detail, scope=str(Scope.READ), scopes=has)


def sinks_of(part: Part, record: PipelineRecord) -> set[str]:
    """Return the names of the sinks that this part of a token waits for."""
    return {each.sink.name for at in _places_of(part, record) for each in at.awaited()}


def _places_of(part: Part, record: PipelineRecord) -> Iterator[_At]:
    uid, name = record.pipeline_uid, record.name
    for topic_id in sorted({span.topic_id for span in part.spans}):
        yield _At(uid, name, record.stages, topic_id, part.generation, part.into)


def _enter(record: PipelineRecord, here: Iterable[_At], path: str) -> tuple[ThroughStep, list[_At]]:
    read = Topology(record.stages).at(record.generation).root_ids()
    led_by: list[ThroughSink] = []
    there: list[_At] = []
    for at in here:
        awaited = at.awaited()
        if at.into:
            message = "the token of a replay is for one pipeline"
            raise _refuse(f"{path}through", message, "what may be asked for", ["no pipeline"])
        into = [each for each in awaited if read & each.sink.ids]
        if not into:
            message = f"{record.name} reads nothing that {at.pipeline} writes of the token"
            sinks = {each.sink.name for each in awaited}
            raise _refuse(f"{path}through", message, f"sinks of {at.pipeline}", sinks)
        led_by += [ThroughSink(uid=at.uid, topic_id=at.topic_id, sink=each.key) for each in into]
        ids = sorted(read & frozenset().union(*(each.sink.ids for each in into)))
        there += [
            _At(record.pipeline_uid, record.name, record.stages, topic_id, record.generation)
            for topic_id in ids
        ]
    reached = {at.topic_id for at in there}
    step = ThroughStep(
        pipeline=record.name,
        uid=record.pipeline_uid,
        generation=record.generation,
        led_by=tuple(dict.fromkeys(led_by)),
        late=tuple(sorted({each for each in _late(record.stages) if each.topic_id in reached})),
    )
    return step, [*dict.fromkeys(there)]


def _late(stages: Sequence[StageDefinition]) -> Iterator[Span]:
    """Yield the spans that some sinks do not process, because a sink was added after its stage had
    started. For a deleted topic no offset is known, so all of it counts if sinks were added
    later.
    """
    lives = {sink.since for stage in stages for sink in stage.sinks}
    for source in (source for stage in stages for source in stage.inputs if source.root):
        bases = source.bases
        for (topic_id, number), end in source.whole.items():
            if end > bases.get((topic_id, number), 0):
                yield Span(topic_id=topic_id, partition=number, start=0, end=end)
        for topic_id in source.retired if len(lives) > 1 else ():
            yield Span(topic_id=topic_id, partition=-1, start=0, end=ENDLESS)


def _refuse_unknown_sinks(names: Sequence[str], here: Iterable[_At], path: str) -> None:
    found: set[str] = set()
    meant: set[str] = set()
    for at in here:
        awaited = [each.sink for each in at.awaited()]
        known = {sink.name for sink in awaited}
        if not any(is_meant(sink, names) for sink in awaited):
            message = f"a part of the token waits for none of {', '.join(names):.300}"
            raise _refuse(f"{path}sinks", message, "sinks that it waits for", known)
        found |= known
        meant |= {name for sink in awaited for name in names_of(sink)}
    missing = [name for name in names if name not in meant]
    if missing:
        message = f"the token waits for no sink {missing[0]!r:.100}"
        raise _refuse(f"{path}sinks", message, "sinks that it waits for", found)


def _refuse(path: str, message: str, what: str, names: Iterable[str]) -> Refusal:
    hint = f"{what}: {', '.join(sorted(names)) or 'none'}"
    return invalid(path, message, hint=hint)
