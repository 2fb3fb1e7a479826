"""Decides about records that a person wants in their dead-letter topics. Never does I/O.

1. `request_of` refuses what no stage reads, and what Kafka does not have. Each stage reads
   `waybill.replays`: there it is a dead letter that is to be replayed.
2. The request is kept in the record, and the driver is killed: its batch may never end. A pipeline
   that does not run stays so.
3. The next driver writes the letter before its first batch. Only it knows how far the stage is. It
   reports with its start which records were processed before.
4. `answer_requests` answers these as failed, and drops all requests from the record: they are done.
   The record that is written next lacks them. Until then a driver may get them again, which does no
   harm.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from waybill_shared.contract.commands import PutDeadLetter, Restart
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Command, InputDefinition, PipelineRecord, StageDefinition
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import LossReason, OperationState
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.moves import Decision
from waybill_stage_runner.core.pipelines.planning import TopicState
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.stopped_stages import without_reads

REQUESTS_MAX: Final = 100  # that wait for a start: the record is one message
Ends = Mapping[int, tuple[int, int]]
"""By partition: its first offset, and the one after its last committed record."""
Limits = Mapping[str, Ends]
"""By topic."""
Readers = list[tuple[StageDefinition, InputDefinition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaysTopic:
    """`waybill.replays` as it is now."""

    name: str
    topic_id: str
    ends: Ends


def limits_in(topics: Mapping[str, TopicState], committed: Mapping[str, TopicState]) -> Limits:
    """Return the limits of topics, of which one state has the starts and the other one the ends."""
    return {
        name: {p: (start, committed[name].starts.get(p, start)) for p, start in of.starts.items()}
        for name, of in topics.items()
    }


def request_of(
    record: PipelineRecord, command: Command, limits: Limits, replays: ReplaysTopic
) -> DeadLetterRequest:
    """Return the request of a command. Raise UserError if it can never be done."""
    body = command.body
    assert isinstance(body, Restart)
    assert body.dead_letter is not None
    wanted = body.dead_letter
    readers = [
        (stage, source)
        for stage in record.stages
        if body.stage in (None, stage.name)
        for source in stage.inputs
        if source.topic == wanted.topic
    ]
    of_replays = wanted.topic == replays.name
    ends = replays.ends if of_replays else limits.get(wanted.topic, {})
    unread = _find_unread(record, body, wanted, readers, of_replays=of_replays)
    problem = next(chain(unread, _problems(record, wanted, readers, ends)), None)
    if problem is not None:
        raise UserError([problem], Slug.INVALID)
    return DeadLetterRequest(
        command=command.id,
        stage=body.stage,
        topic=wanted.topic,
        topic_id=replays.topic_id if of_replays else readers[0][1].topic_id,
        partition=wanted.partition,
        offset=wanted.offset,
        reason=wanted.reason,
        by=command.actor,
    )


def put_record(before: PipelineRecord, asked: DeadLetterRequest, now: int) -> PipelineRecord:
    """Return the record with one more request. It says no more than before what is to run, but
    that stopped stages start which read the record.
    """
    stopped = without_reads(before, asked.topic_id, asked.stage)
    asks = (*before.dead_letters, asked)
    return replace(before, dead_letters=asks, stopped_stages=stopped, updated_at=now)


def puts_dead_letter(command: Command) -> bool:
    return isinstance(command.body, Restart) and command.body.dead_letter is not None


def answer_requests(state: PipelineState, not_put: Mapping[str, Problem]) -> Decision:
    """Answer the commands that could not be done, now that a driver has looked at all requests."""
    failed = tuple(
        actions.Answer(
            command=command,
            state=OperationState.FAILED,
            errors=(not_put[command.id],),
            problem=Slug.INVALID,
        )
        for command in state.pending
        if command.id in not_put
    )
    pending = tuple(command for command in state.pending if command.id not in not_put)
    record = replace(state.record, dead_letters=())
    return replace(state, record=record, pending=pending), failed


def _problems(
    record: PipelineRecord, wanted: PutDeadLetter, readers: Readers, partitions: Ends
) -> Iterator[Problem]:
    where = f"{wanted.topic}[{wanted.partition}]"
    if wanted.partition not in partitions:
        message = f"topic {wanted.topic} has no partition {wanted.partition}"
        yield Problem(message=message, hint=f"it has {len(partitions)}")
        return
    first, end = partitions[wanted.partition]
    if not first <= wanted.offset < end:
        message = f"{where}@{wanted.offset}: the topic holds {first} to {end}"
        hint = f"choose an offset from {first} to {end - 1}" if first < end else "it is empty"
        yield Problem(message=message, hint=hint)
    bases = [source.bases.get((source.topic_id, wanted.partition), 0) for _, source in readers]
    base = min(bases, default=0)
    if wanted.offset < base:
        message = f"{where}@{wanted.offset}: no stage reads it, because they began at {base}"
        hint = f"its token says lost, {LossReason.BEFORE_START}"
        yield Problem(message=message, hint=hint)
    if len(record.dead_letters) >= REQUESTS_MAX:
        message = f"{len(record.dead_letters)} records wait for the next start of {record.name}"
        yield Problem(message=message, hint="start it, then put more")


def _find_unread(
    record: PipelineRecord,
    body: Restart,
    wanted: PutDeadLetter,
    readers: Readers,
    *,
    of_replays: bool,
) -> Iterator[Problem]:
    names = [stage.name for stage in record.stages]
    if body.stage is not None and body.stage not in names:
        message = f"{record.name} has no stage {body.stage}"
        yield Problem(message=message, hint=f"its stages: {', '.join(names)}")
    elif not (readers or of_replays):
        stages = [stage for stage in record.stages if body.stage in (None, stage.name)]
        read = sorted({source.topic for stage in stages for source in stage.inputs})
        of = record.name if body.stage is None else f"stage {body.stage}"
        message = f"{of} does not read topic {wanted.topic}"
        yield Problem(message=message, hint=f"topics that it reads: {', '.join(read)}")
