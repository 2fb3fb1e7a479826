"""Carries out the commands that change records of pipelines: one at a time per pipeline, in order.

A new manifest is checked in a driver first. Meanwhile later commands of its pipeline wait. When the
check is done, the command is refused, or becomes ready: the loop handles it again. Then it becomes
a record, and `PipelineSupervisor` brings about what the record wants.

Promise: each command is answered once it is true or known to be impossible. A refused command
leaves nothing written.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from waybill_shared.contract import commands
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.admission import Admission, refuse, refuse_overfull, refuse_slow
from waybill_stage_runner.app.ports import Checked, Drivers, Topics
from waybill_stage_runner.app.restarts import Restarts
from waybill_stage_runner.app.supervisor import PipelineSupervisor
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.command_queue import CommandQueues
from waybill_stage_runner.core.pipelines.names import (
    make_reservation,
    refuse_reserved,
    refuse_unreserved,
    with_name,
)
from waybill_stage_runner.core.pipelines.parallelism import (
    parallelism_in,
    refuse_excess,
    rescale_record,
    rescale_to_keep,
)
from waybill_stage_runner.core.pipelines.planning import (
    TopicState,
    as_planned,
    begin_times,
    define,
    start_at,
    topics_of,
)
from waybill_stage_runner.core.pipelines.records import (
    DESIRED_BY_ACTION,
    change_record,
    create_record,
    refuse_deleted,
    refuse_drain,
    refuse_ended,
    refuse_not_allowed,
    rename_record,
)
from waybill_stage_runner.core.pipelines.renaming import in_present_names
from waybill_stage_runner.core.pipelines.scheduling import with_next_time
from waybill_stage_runner.core.pipelines.stopped_stages import start_record


class Changes:
    def __init__(
        self,
        supervisor: PipelineSupervisor,
        topics: Topics,
        drivers: Drivers,
        clock: Clocks,
        admission: Admission,
    ) -> None:
        self._supervisor = supervisor
        self._topics = topics
        self._restarts = Restarts(topics)
        self._drivers = drivers
        self._clock = clock
        self._admission = admission
        self.queues = CommandQueues()

    def handle(self, command: Command, offset: int) -> None:
        """Carry out a command, or queue it, or have it checked first.

        A command that is read again after a restart changes nothing. Raises Retryable while nothing
        of the command is decided. From then on the supervisor carries it out, however long that
        needs.
        """
        if _is_forced_stop(command) and self.queues.must_wait(command):
            self._supersede_queued(command)
        if self.queues.must_wait(command):
            self._queue(command, offset)
        elif (manifest := self._to_check(command, offset)) is not None:
            self._check(command, manifest, offset)
        else:
            self._carry_out(command, offset)
            self.queues.remove(command)

    def finish_check(self, found: Checked) -> None:
        """Accept the result of a command's check. Results for other runners are ignored."""
        command = self.queues.finish_check(found.check_id)
        if command is None:
            return
        assert isinstance(command.body, commands.Apply)
        manifest = command.body.manifest
        misfits = self._admission.find_misfits(manifest, self._clock.now_ms())
        problems = (*misfits, *found.problems)
        if found.failed is not None:
            now = self._clock.monotonic_ms()
            self.answer(self._admission.refuse_unchecked(command, manifest, found.failed, now))
        elif problems:
            self.answer(refuse(command, problems, Slug.INVALID))

    def answer(self, answer: Answer) -> None:
        self.queues.remove(answer.command)
        self._supervisor.answer(answer)

    def clear(self) -> None:
        for check_id in self.queues.checking:
            self._drivers.forget_check(check_id)
        self.queues.clear()

    def _supersede_queued(self, by: Command) -> None:
        """Fail the commands that wait before a forced stop, which waits for no check."""
        checking = self.queues.checking
        for command in self.queues.remove_all(by.pipeline_uid):
            if command.id in checking:
                self._drivers.forget_check(command.id)
            problem = Problem(message="superseded by a later forced stop")
            self._supervisor.answer(refuse(command, (problem,), Slug.SUPERSEDED))

    def _queue(self, command: Command, offset: int) -> None:
        if self.queues.has_room(command):
            self.queues.add(command, offset)
        else:
            self._supervisor.answer(refuse_overfull(command))

    def _to_check(self, command: Command, offset: int) -> AppliedManifest | None:
        """Return the manifest that must be checked first; None if there is none."""
        if not isinstance(command.body, commands.Apply) or self.queues.is_checked(command):
            return None
        if self._is_over(command, offset):
            return None
        record, manifest = self._supervisor.record(command.pipeline_uid), command.body.manifest
        same = record is not None and manifest.native == record.manifest.native
        return None if same else manifest

    def _is_over(self, command: Command, offset: int) -> bool:
        """Return True if the command was carried out before or is too late: it starts nothing."""
        record = self._supervisor.record(command.pipeline_uid)
        if command.pipeline_uid in self._supervisor.deleted:
            return True
        return record is not None and (offset <= record.commanded_at or record.desired == "deleted")

    def _check(self, command: Command, manifest: AppliedManifest, offset: int) -> None:
        if self._admission.slow(manifest, self._clock.monotonic_ms()):
            self.answer(refuse_slow(command))
            return
        self.queues.start_check(command, offset)
        before = self._supervisor.record(command.pipeline_uid)
        kept = None if before is None else rescale_to_keep(before, manifest)
        wanted = parallelism_in(manifest) if kept is None else kept.parallelism
        self._drivers.check(command.id, command.pipeline_uid, manifest, parallelism=wanted)

    def _carry_out(self, command: Command, offset: int) -> None:
        uid, deleted_at = command.pipeline_uid, self._supervisor.deleted.get(command.pipeline_uid)
        if deleted_at == offset:
            self._supervisor.answer(Answer(command=command, state=OperationState.DONE))
            return
        before = self._supervisor.record(uid)
        if isinstance(command.body, commands.Rename) and command.body.reserved_for is not None:
            self._reserve_name(command, command.body, offset)
            return
        command = in_present_names(command, before)
        done_to = before.commanded_at if before is not None else deleted_at
        if before is not None and _is_recorded(command, offset, before):
            self._supervisor.request(before, command, written=True)
            return
        if done_to is not None and offset < done_to:
            return  # a later command has overtaken it: it was answered then, or nobody waits
        try:
            record = self._next_record(command, before)
        except UserError as error:
            self._supervisor.answer(refuse(command, error.problems, error.slug))
            return
        record = with_next_time(record, before, self._clock.now_ms())
        if before is None or record.desired != before.desired:
            record = replace(record, desired_by=command.actor)
        self._supervisor.request(replace(record, commanded_at=offset), command, written=False)

    def _reserve_name(self, command: Command, body: commands.Rename, offset: int) -> None:
        """Write that the name is that of another pipeline from now on, or refuse it: this life of
        the name began before as that of a pipeline, or was reserved for a third one.
        """
        uid, reserved = command.pipeline_uid, self._supervisor.reserved.get(command.pipeline_uid)
        before = self._supervisor.record(uid)
        try:
            if reserved not in (None, (body.reserved_for, body.reserved_in)):
                refuse_reserved(command)
            if reserved is None:
                refuse_ended(command, before, deleted=uid in self._supervisor.deleted)
                record = make_reservation(command, body, before, offset=offset)
                self._supervisor.reserve_name(record)
        except UserError as error:
            self._supervisor.answer(refuse(command, error.problems, error.slug))
            return
        self._supervisor.answer(Answer(command=command, state=OperationState.DONE))

    def _next_record(self, command: Command, before: PipelineRecord | None) -> PipelineRecord:
        now, body = self._clock.now_ms(), command.body
        assert not isinstance(body, commands.QuestionBody)
        self._refuse_late(command, before)
        refuse_unreserved(body, before)
        if isinstance(body, commands.Apply):
            return self._apply(command, body.manifest, before, now)
        assert before is not None
        refuse_not_allowed(body, before, self._supervisor.phase(before.pipeline_uid))
        match body:
            case commands.Restart():
                return self._restarts.restart(command, body, before, now)
            case commands.SetOffsets():
                return self._restarts.set_offsets(command.actor, body, before, now)
            case commands.Rescale(parallelism=wanted):
                refuse_excess(wanted, self._admission.limits)
                return rescale_record(before, wanted, command.actor, now)
            case commands.Rename(name=name):
                return rename_record(before, name, now)
            case commands.Start():
                return start_record(before, body, now)
            case commands.Resume() | commands.Pause() | commands.Delete():
                return replace(before, desired=DESIRED_BY_ACTION[body.action], updated_at=now)
            case commands.Stop(mode=mode):
                refuse_drain(mode, before, self._supervisor.phase(before.pipeline_uid))
                stopped = replace(before, desired="stopped", stop_mode=mode, updated_at=now)
                return replace(stopped, finished=False)
            case _:
                assert_never(body)

    def _refuse_late(self, command: Command, before: PipelineRecord | None) -> None:
        """Raise UserError if the pipeline has ended, or its name is reserved for another one."""
        if command.pipeline_uid in self._supervisor.reserved:
            refuse_reserved(command)
        refuse_deleted(command, before, deleted=command.pipeline_uid in self._supervisor.deleted)

    def _apply(
        self, command: Command, applied: AppliedManifest, before: PipelineRecord | None, now: int
    ) -> PipelineRecord:
        """Return the record after `apply`, checked before topics are created: a refusal makes none.

        It is checked again afterwards, because a topic may be created again at any moment.
        """
        manifest = applied.model
        plans = topics_of(manifest)
        present = {} if before is None else self._topics.ids(plans)
        try:
            planned = define(manifest, as_planned(plans, present), before)
            other = None if before is None else with_name(before, manifest.name)
            if other is not None:
                change_record(other, applied, manifest.state, planned, now)
            stages = define(manifest, self._prepare(manifest, now), before)
            if other is None:
                return create_record(command, applied, manifest.state, stages, now)
            return change_record(other, applied, manifest.state, stages, now)
        except UserError as error:
            raise UserError(applied.place(error.problems), error.slug) from error

    def _prepare(self, manifest: Manifest, now: int) -> Mapping[str, TopicState]:
        """Create missing topics, and return the state of all. Times become offsets here, for new
        stages only: what exists keeps its first offsets.
        """
        topics = dict(self._topics.prepare(topics_of(manifest)))
        for topic, at in begin_times(manifest, now).items():
            found = self._topics.starts_at({topic: topics[topic]}, at)
            topics[topic] = start_at(topics[topic], found[topic])
        return topics


def _is_recorded(command: Command, offset: int, record: PipelineRecord) -> bool:
    """Return True if the record is as the command wants it, and its answer may be missing: it was
    the last one, or a stop that a later one has joined.
    """
    body, wanted = command.body, (record.desired, record.stop_mode)
    stops = isinstance(body, commands.Stop) and wanted == ("stopped", body.mode)
    return offset == record.commanded_at or (stops and offset < record.commanded_at)


def _is_forced_stop(command: Command) -> bool:
    return command.body == commands.Stop(mode=commands.StopMode.FORCE)
