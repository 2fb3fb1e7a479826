"""Answers questions about pipelines and manifests, which change no record.

No other command waits for a question. One that needs a driver is answered when the driver reports
what it found (`finish_check`). A validation that must be compared with a pipeline then becomes
ready, and is handled again, because the comparison may have to wait for Kafka.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never

from waybill_shared.contract.commands import COMMANDS, Logs, Maintain, QuestionBody, Validate
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.manifest.maintenance import refuse_no_tasks
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.admission import (
    Admission,
    refuse,
    refuse_crowded,
    refuse_missing,
    refuse_slow,
    refuse_unfinished,
)
from waybill_stage_runner.app.change_preview import compare
from waybill_stage_runner.app.ports import Checked, Drivers, Topics
from waybill_stage_runner.app.supervisor import PipelineSupervisor
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.command_queue import CommandQueues
from waybill_stage_runner.core.pipelines.manifest_changes import notes_of
from waybill_stage_runner.core.pipelines.renaming import find_wrong_names
from waybill_stage_runner.core.pipelines.validation_result import validation_result
from waybill_stage_runner.core.pool.model import CheckFailure

NOT_MAINTAINED: Final[Mapping[CheckFailure, str]] = {
    "driver_exited": (
        "the driver that did it ended, and the next one too; what was done stays done"
    ),
    "not_started": "the driver that was to do it did not begin, and was ended",
    "deadline": "it took too long, and was ended; what was done stays done",
}


class Questions:
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
        self._drivers = drivers
        self._clock = clock
        self._admission = admission
        self._found: dict[str, Checked] = {}
        """Results of validations that must still be compared with a pipeline, by command id."""
        self.queues = CommandQueues()

    def handle(self, command: Command, offset: int) -> None:
        """Answer a question, or send it to a driver first. Raises Retryable."""
        body = command.body
        assert isinstance(body, QuestionBody)
        record = self._record_of(command)
        if COMMANDS[command.action].needs_driver and command.id not in self._found:
            self._send(command, body, offset, record)
        else:
            self.answer(self._answer_here(command, body, record))

    def finish_check(self, found: Checked) -> None:
        """Accept what a driver found. Results for questions of other runners are ignored."""
        command = self.queues.finish_check(found.check_id)
        if command is not None and isinstance(command.body, Validate):
            now = self._clock.now_ms()
            misfits = self._admission.find_misfits(command.body.manifest, now)
            found = replace(found, problems=(*misfits, *found.problems))
        match None if command is None else command.body:
            case Validate(about=about) if about is not None and found.failed is None:
                self._found[found.check_id] = found
            case Validate() as body:
                assert command is not None
                self.answer(self._answer_validation(command, body, found))
            case Maintain() as body:
                assert command is not None
                record = self._record_of(command)
                if record is not None and not body.dry_run:
                    self._supervisor.report_maintenance(record, body.sink, found.tasks)
                self.answer(_answer_maintenance(command, body, found))

    def answer(self, answer: Answer) -> None:
        self.queues.remove(answer.command)
        self._admission.leave(answer.command.id)
        self._found.pop(answer.command.id, None)
        self._supervisor.answer(answer)

    def clear(self) -> None:
        for check_id in self.queues.checking:
            self._drivers.forget_check(check_id)
        for command in self.queues:
            self._admission.leave(command.id)
        self._found.clear()
        self.queues.clear()

    def _record_of(self, command: Command) -> PipelineRecord | None:
        """Return the pipeline that the question is about; None if this runner does not have it."""
        record = self._supervisor.record(command.about)
        if record is None or record.tenant != command.tenant or record.desired == "deleted":
            return None
        return record

    def _send(
        self, command: Command, body: QuestionBody, offset: int, record: PipelineRecord | None
    ) -> None:
        """Send the question to a driver, or refuse it."""
        refusal = self._refusal(command, body, record)
        if refusal is not None:
            self.answer(refusal)
            return
        if not self._admission.enter(command.id):
            self.answer(refuse_crowded(command))
            return
        self.queues.start_check(command, offset)
        match body:
            case Validate():
                self._drivers.check(
                    command.id,
                    command.pipeline_uid,
                    body.manifest,
                    for_run=False,
                    before=None if record is None else record.manifest,
                    compared_with=body.about,
                )
            case Maintain():
                assert record is not None
                self._drivers.maintain(command.id, record, body.sink, dry_run=body.dry_run)
            case Logs():
                raise AssertionError("it needs no driver")
            case _:
                assert_never(body)

    def _refusal(
        self, command: Command, body: QuestionBody, record: PipelineRecord | None
    ) -> Answer | None:
        match body:
            case Validate(manifest=manifest):
                slow = self._admission.slow(manifest, self._clock.monotonic_ms())
                return refuse_slow(command) if slow else None
            case _ if record is None:
                return refuse_missing(command)
            case Maintain(sink=sink):
                try:
                    refuse_no_tasks(record.manifest.model, sink)
                except UserError as error:
                    return refuse(command, error.problems, Slug.INVALID)
        return None

    def _answer_here(
        self, command: Command, body: QuestionBody, record: PipelineRecord | None
    ) -> Answer:
        """Return the answer that needs no driver, or no driver any more. Raises Retryable."""
        if isinstance(body, Validate):
            found = self._found[command.id]
            return _answer_done(command, compare(body, found, record, self._topics))
        if record is None:
            return refuse_missing(command)
        assert isinstance(body, Logs)
        lines = self._drivers.newest_log(record.pipeline_uid, body.lines)
        result = {"pipeline": record.name, "lines": [*lines]}
        return _answer_done(command, json.dumps(result, ensure_ascii=False))

    def _answer_validation(self, command: Command, body: Validate, found: Checked) -> Answer:
        if found.failed is not None:
            now = self._clock.monotonic_ms()
            return self._admission.refuse_unchecked(command, body.manifest, found.failed, now)
        notes = notes_of(found.alterations)
        problems = (*found.problems, *find_wrong_names(body.manifest))
        result = validation_result(body, problems, found.columns, notes=notes)
        return _answer_done(command, result)


def _answer_maintenance(command: Command, body: Maintain, found: Checked) -> Answer:
    if found.failed is not None:
        return refuse_unfinished(command, NOT_MAINTAINED[found.failed])
    if found.problems:
        return refuse(command, found.problems, Slug.INVALID)
    done = {
        "sink": body.sink,
        "dry_run": body.dry_run,
        "tasks": {name: dict(counts) for name, counts in found.tasks.items()},
    }
    return _answer_done(command, json.dumps(done))


def _answer_done(command: Command, result: str) -> Answer:
    return Answer(command=command, state=OperationState.DONE, result=result)
