"""Decides from where stages read when a person asks for it. Never does I/O.

1. `plan_rewinds` finds the stages and the partitions that are meant. It refuses what lies below the
   begin of a stage, what Kafka does not hold, and stages before a sink in which rows would be
   replaced by older ones for good.
2. `refuse_unconfirmed` says how many records come again, which sinks show older rows meanwhile, and
   what is skipped, until the person has confirmed it.
3. `rewound_record` notes the rewinds, each with a number. The next run does them, unless
   `forget_rewinds` takes them back before it begins.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.commands import Rewinding
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import InputDefinition, PipelineRecord, StageDefinition
from waybill_shared.contract.manifest.sink_settings import SinkSettings
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.topology import Topology
from waybill_shared.contract.words import LossReason
from waybill_stage_runner.core.pipelines.planning import TopicState

REPLACED: Final = "add a stage under a new name with an empty table, and remove this one"
MEANWHILE: Final = "until the stage has caught up, answers about tokens say `rewinding`"
CONFIRM: Final = "confirm it with --yes (over HTTP `yes=true`)"
BEGUN: Final = "a stage under a new name begins again: it reads all that its inputs still hold"
Times = Mapping[str, Mapping[int, int]]
"""By topic and partition: the first offset that is not older than the time that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A partition in which a stage begins at `start`. Its topic holds `first` to `end` for it."""

    stage: StageDefinition
    topic: str
    topic_id: str
    partition: int
    first: int
    start: int
    end: int

    @property
    def goes_back(self) -> bool:
        """True if records may come again."""
        return self.start < self.end

    def effects(self) -> Iterator[Problem]:
        """Yield what somebody must confirm. How far the stage is, only its sinks know."""
        where = f"{self.topic}[{self.partition}]"
        if self.goes_back:
            count = self.end - self.start
            records = f"up to {count} {'record' if count == 1 else 'records'} of {where}"
            message = f"stage {self.stage.name} reads {records} again, from offset"
            hint = f"their rows are written again: {CONFIRM}"
            yield Problem(message=f"{message} {self.start}", hint=hint)
        if self.first < self.start:
            message = f"stage {self.stage.name} skips what it has not read of {where} before offset"
            hint = f"its tokens end lost, {LossReason.SKIPPED_BY_OPERATOR}: {CONFIRM}"
            yield Problem(message=f"{message} {self.start}", hint=hint)


def plan_rewinds(
    record: PipelineRecord,
    asked: Rewinding,
    topics: Mapping[str, TopicState],
    times: Times,
    now: int,
) -> tuple[Again, ...]:
    """Return where stages begin. Raise UserError if that is not possible."""
    problems = [*_misfits(record, asked, now)]
    stages = [s for s in record.stages if asked.stage in (None, s.name)]
    chosen = [(s, i) for s in stages for i in s.inputs if _is_meant(i, asked)]
    if asked.start_from != "latest":
        problems = problems or [*_find_replacing(record, {stage.name for stage, _ in chosen})]
    if problems:
        raise UserError(problems, Slug.INVALID)
    found = [again for s, i in chosen for again in _again(s, i, asked, topics[i.topic], times)]
    problems = [each for each in found if isinstance(each, Problem)]
    if problems:
        raise UserError(problems, Slug.INVALID)
    return tuple(each for each in found if isinstance(each, Again))


def refuse_unconfirmed(record: PipelineRecord, asked: Rewinding, again: Iterable[Again]) -> None:
    """Raise UserError if records come again, or are skipped, and nobody has confirmed that."""
    again = tuple(again)
    problems = [effect for each in again for effect in each.effects()]
    back = {each.stage.name for each in again if each.goes_back}
    problems += _find_older_rows(record, back | _fed_stages(record, back))
    if problems and not asked.confirmed:
        raise UserError(problems, Slug.REWIND_NOT_CONFIRMED)


def rewound_record(
    record: PipelineRecord, again: Iterable[Again], by: str, now: int, *, forward: bool
) -> PipelineRecord:
    """Return the record with the rewinds. What earlier ones say of the same partitions is replaced;
    if `forward`, no sink goes back."""
    number = max((each.number for each in record.rewinds), default=0) + 1
    starts: dict[tuple[str, int], dict[tuple[str, int], int]] = {}
    for each in again:
        of = (each.stage.name, each.stage.since)
        starts.setdefault(of, {})[each.topic_id, each.partition] = each.start
    present = {(stage.name, stage.since) for stage in record.stages}
    kept = [
        replace(earlier, starts=rest)
        for earlier in record.rewinds
        for of in [(earlier.stage, earlier.since)]
        if of in present
        for rest in [{at: s for at, s in earlier.starts.items() if at not in starts.get(of, {})}]
        if rest or not (earlier.starts or of in starts)
    ]
    new = (
        StageRewind(
            stage=stage, since=since, number=number, starts=vector, by=by, at=now, forward=forward
        )
        for (stage, since), vector in starts.items()
    )
    return replace(record, rewinds=(*kept, *new))


def forget_rewinds(record: PipelineRecord) -> PipelineRecord:
    """Return the record with rewinds that name no partition: sinks that have not done them stay
    where they are. So no number comes again, and a stage that was rewound is known as such.
    """
    of_stages = {(each.stage, each.since): each for each in sorted(record.rewinds, key=_number_of)}
    return replace(record, rewinds=tuple(replace(each, starts={}) for each in of_stages.values()))


def _number_of(rewind: StageRewind) -> int:
    return rewind.number


def _is_meant(source: InputDefinition, asked: Rewinding) -> bool:
    """Return True if the input is read again. An inner topic is written again by the stage before,
    so it is meant only where somebody names it, or its stage."""
    if asked.offsets:
        return any(each.topic == source.topic for each in asked.offsets)
    return source.root or asked.stage is not None


def _misfits(record: PipelineRecord, asked: Rewinding, now: int) -> Iterator[Problem]:
    """Yield what is wrong with the question itself."""
    names = [stage.name for stage in record.stages]
    if asked.stage is not None and asked.stage not in names:
        hint = f"its stages: {', '.join(names)}"
        yield Problem(message=f"{record.name} has no stage {asked.stage}", hint=hint)
        return
    if asked.at is not None and asked.at > now:
        message = f"{format_moment(asked.at)} is in the future"
        yield Problem(message=message, hint=f"now it is {format_moment(now)}")
    stages = [stage for stage in record.stages if asked.stage in (None, stage.name)]
    read = {i.topic for stage in stages for i in stage.inputs}
    for topic in sorted({each.topic for each in asked.offsets} - read):
        of = record.name if asked.stage is None else f"stage {asked.stage}"
        hint = f"topics that it reads: {', '.join(sorted(read))}"
        yield Problem(message=f"{of} does not read topic {topic}", hint=hint)


def _find_replacing(record: PipelineRecord, rewound: Set[str]) -> Iterator[Problem]:
    """Yield the sinks in which older rows would replace newer ones, and why that cannot be."""
    fed, tables = _fed_stages(record, rewound), _count_targets(record)
    mixed = {stage.name for stage in record.stages if stage.name in fed and len(stage.inputs) > 1}
    for stage, sink, settings in _sinks_of(record, rewound | fed):
        shared = settings.admits_others or tables[type(settings), settings.target] > 1
        why = _find_harm(settings, mixed=stage in mixed, shared=shared)
        if why is not None:
            message = f"stage {stage}: sink {sink} {why}: this is not supported"
            yield Problem(message=message, hint=REPLACED)


def _find_harm(sink: SinkSettings, *, mixed: bool, shared: bool) -> str | None:
    """Return why older rows cannot come again to a sink. `mixed`: those of a stage before, while
    its stage reads other inputs. `shared`: others write to its table."""
    if sink.replaces:
        return "is replaced by each batch, and a rewind cuts batches elsewhere"
    if sink.merge_keys and mixed:
        return "replaces rows, and older ones of one input would replace newer ones of another"
    if sink.merge_keys and shared:
        return "shares its table, and older rows would replace newer ones of others for good"
    return None


def _find_older_rows(record: PipelineRecord, stages: Set[str]) -> Iterator[Problem]:
    """Yield the sinks of these stages in which older rows replace newer ones until their stage has
    caught up."""
    for stage, sink, settings in _sinks_of(record, stages):
        if settings.merge_keys:
            message = f"stage {stage}: sink {sink} shows older rows again"
            yield Problem(message=message, hint=f"{MEANWHILE}: {CONFIRM}")


def _count_targets(record: PipelineRecord) -> Counter[tuple[type[SinkSettings], str]]:
    stages = {stage.name for stage in record.stages}
    return Counter((type(each), each.target) for _, _, each in _sinks_of(record, stages))


def _sinks_of(record: PipelineRecord, stages: Set[str]) -> Iterator[tuple[str, str, SinkSettings]]:
    for stage in record.manifest.model.stages:
        if stage.name in stages:
            yield from ((stage.name, sink.name, sink.settings) for sink in stage.sinks)


def _fed_stages(record: PipelineRecord, rewound: Set[str]) -> Set[str]:
    """Return the names of the stages that get older rows of these, as new records."""
    stages = [stage for stage in record.stages if stage.name in rewound]
    return {stage.name for stage in Topology(record.stages).fed_by(stages)}


def _again(
    stage: StageDefinition,
    source: InputDefinition,
    asked: Rewinding,
    state: TopicState,
    times: Times,
) -> Iterator[Again | Problem]:
    """Yield the partitions of an input, or what is wrong with the offsets that were asked for."""
    given = {each.partition: each.offset for each in asked.offsets if each.topic == source.topic}
    for partition in sorted(given.keys() - state.ends.keys()):
        message = f"topic {source.topic} has no partition {partition}"
        yield Problem(message=message, hint=f"it has {len(state.ends)}")
    for partition, end in sorted(state.ends.items()):
        base = source.bases.get((source.topic_id, partition), 0)
        first = max(base, state.starts[partition])
        if asked.offsets and partition not in given:
            continue
        start = given.get(partition, end if asked.start_from == "latest" else first)
        if asked.at is not None:
            start = max(first, times[source.topic].get(partition, end))
        if partition in given:
            problem = _find_problem(
                stage, f"{source.topic}[{partition}]", start, (base, first, end)
            )
            if problem is not None:
                yield problem
                continue
        yield Again(
            stage=stage,
            topic=source.topic,
            topic_id=source.topic_id,
            partition=partition,
            first=first,
            start=start,
            end=max(start, end),
        )


def _find_problem(
    stage: StageDefinition, where: str, start: int, limits: tuple[int, int, int]
) -> Problem | None:
    base, first, end = limits
    if start < base:
        message = f"{where}={start}: stage {stage.name} began at {base}, what lies before is lost,"
        return Problem(message=f"{message} {LossReason.BEFORE_START}", hint=BEGUN)
    if not first <= start <= end:
        hint = f"choose an offset from {first} to {end}"
        return Problem(message=f"{where}={start}: the topic holds {first} to {end}", hint=hint)
    return None
