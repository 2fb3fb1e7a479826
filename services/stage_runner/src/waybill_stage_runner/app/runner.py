"""Runs the pipelines of one commands partition: commands and reports come in, messages go out.

`Changes` carries out commands that change a record, `Questions` answers the others, and
`PipelineSupervisor` supervises the drivers. The loop calls `handle` with a command. If the command
must wait, it is handled again when `next_ready` returns it.
"""

from collections.abc import Iterable

from waybill_shared.contract.commands import COMMANDS
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.admission import Admission, refuse
from waybill_stage_runner.app.changes import Changes
from waybill_stage_runner.app.ports import Checked, Drivers, Publisher, Topics
from waybill_stage_runner.app.questions import Questions
from waybill_stage_runner.app.supervisor import PipelineSupervisor
from waybill_stage_runner.core.pipelines.events import RunEvent
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT, TimeLimits


class Runner:
    def __init__(
        self,
        topics: Topics,
        publisher: Publisher,
        drivers: Drivers,
        clock: Clocks,
        *,
        admission: Admission | None = None,
        times: TimeLimits = BY_DEFAULT,
    ) -> None:
        """Keep the ports. `admission` has the limits; runners that share drivers share it."""
        admission = admission or Admission()
        self._clock = clock
        self._supervisor = PipelineSupervisor(
            publisher, drivers, clock, times=times, limits=admission.limits
        )
        self._changes = Changes(self._supervisor, topics, drivers, clock, admission)
        self._questions = Questions(self._supervisor, topics, drivers, clock, admission)
        self._answered: frozenset[str] = frozenset()

    @property
    def states(self) -> Iterable[PipelineState]:
        return self._supervisor.states

    @property
    def busy(self) -> bool:
        """True if something is decided and not yet carried out."""
        return self._supervisor.busy

    def adopt(self, record: PipelineRecord) -> None:
        """Accept a pipeline as it was recorded before this runner owned its partition."""
        self._supervisor.adopt(record)

    def adopt_answered(self, commands: Iterable[str]) -> None:
        """Accept the ids of answered commands with open offsets: they are not carried out again."""
        self._answered = frozenset(commands)

    def release(self) -> None:
        """Stop all work, because another runner owns these pipelines from now on."""
        self._supervisor.release()
        self._changes.clear()
        self._questions.clear()

    def handle(self, command: Command, offset: int) -> None:
        """Decide a command, or let it wait. Raises Retryable while nothing of it is decided."""
        part = self._part(command)
        if command.id in self._answered:
            part.queues.remove(command)
        else:
            part.handle(command, offset)

    def next_ready(self) -> tuple[int, Command] | None:
        """Return a command that has waited and is to be handled now."""
        now = self._clock.monotonic_ms()
        ready = self._changes.queues.next_ready(now) or self._questions.queues.next_ready(now)
        return None if ready is None else (ready.offset, ready.command)

    def finish_check(self, found: Checked) -> None:
        """Accept what a driver found. Results for other runners are ignored."""
        self._changes.finish_check(found)
        self._questions.finish_check(found)

    def receive(self, pipeline_uid: str, epoch: int, event: RunEvent) -> None:
        """Accept an event of the driver with that lease. Events of earlier drivers are ignored."""
        self._supervisor.receive(pipeline_uid, epoch, event)

    def postpone(self, command: Command, offset: int) -> int:
        """Let a command wait that `handle` could not decide; `next_ready` returns it again.

        Return for how long it has been tried, in milliseconds.
        """
        return self._part(command).queues.postpone(command, offset, self._clock.monotonic_ms())

    def refuse(self, command: Command, reason: str) -> None:
        """Refuse a command that `handle` could not decide in time. Nothing of it is written."""
        problem = Problem(message=reason, hint="send the command again when that is mended")
        self._part(command).answer(refuse(command, (problem,), Slug.COMMAND_GIVEN_UP))

    def tick(self) -> None:
        self._supervisor.tick()

    def act(self) -> None:
        """Carry out what was decided, in order; what raises Retryable stays first in the queue."""
        self._supervisor.act()

    def beat(self) -> None:
        self._supervisor.beat()

    def open_commands(self) -> set[str]:
        """Return the ids of commands still to be answered. Their offsets must not be committed."""
        queues = (self._changes.queues, self._questions.queues)
        return self._supervisor.open_commands() | {each.id for queue in queues for each in queue}

    def _part(self, command: Command) -> Changes | Questions:
        row = COMMANDS[command.action]
        return self._changes if row.changes_record else self._questions
