"""Runners and trackers on their machines: whose turn it is, who was replaced, and who lives on.

A process that lost its partition does not know it: it goes on where it was paused, and what it had
sent and nobody acknowledged may land late. It learns of its loss when it polls again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Protocol, TypeVar

from sim.driver import Crash, Driver
from sim.operations import Operations
from sim.redis_server import RedisServer
from sim.runner import RunnerProcess
from sim.runner_world import Around as RunnersAround
from sim.tracker import Topics, TrackerProcess
from waybill_shared.contract.errors import Retryable

T = TypeVar("T")


class Around(RunnersAround, Protocol):
    redis: RedisServer
    dice: Random

    def interrupt(self, who: str, edge: str) -> None: ...

    def say(self, text: str) -> None: ...

    def alive(self, uid: str | None = None) -> list[Driver]: ...


class Hosts:
    """One partition of commands and facts, and who has it."""

    def __init__(self, world: Around, operations: Operations) -> None:
        self.operations = operations
        self.topics = Topics()
        self._world = world
        self._inside: list[object] = []
        self._standby: RunnerProcess | None = None
        self._other_tracker: TrackerProcess | None = None
        self.cut_off: list[RunnerProcess] = []
        """Runners that nobody hears, and that were replaced without knowing it."""
        self.stopped: list[TrackerProcess] = []
        """Trackers that stand still, and that were replaced meanwhile."""
        self.runner = self._new_runner()
        self.tracker = self._new_tracker()

    def run_runner(self) -> None:
        with self.turn(self.runner) as runner:
            if runner is not None:
                runner.turn()

    def run_cut_off(self) -> None:
        """They supervise their drivers, and what they say waits in their own memory."""
        for runner in [*self.cut_off]:
            with self.turn(runner) as free:
                if free is not None:
                    free.turn()

    def run_tracker(self, work: Callable[[TrackerProcess], None]) -> None:
        with self.turn(self.tracker) as tracker:
            if tracker is not None:
                work(tracker)

    def replace_runner(self) -> None:
        """Its drivers die with it, at the latest when they come to themselves."""
        self._world.say("runner is gone")
        self._bury(self.runner)
        self.runner = self._new_runner()

    def cut_runner(self) -> None:
        """Its partition goes to another one; it lives on, and so do its drivers."""
        self._world.say("runner is cut off")
        self.runner.reachable = False
        self.cut_off.append(self.runner)
        self.runner = self._new_runner()

    def return_runners(self) -> None:
        """What they had sent lands now; then they poll, and learn that they own nothing."""
        for runner in [r for r in self.cut_off if not self._busy(r)]:
            self._world.say("a runner that was cut off returns")
            self.cut_off.remove(runner)
            runner.return_to_the_log()
            self._bury(runner)

    def move_runner(self) -> None:
        """The group gives the partition to another runner, and later perhaps back."""
        if self._busy(self.runner):
            return
        self._world.say("the partition of the commands moves")
        self.runner.release()
        other = self._standby if self._standby is not None else self._new_runner()
        self.runner, self._standby = other, self.runner

    def replace_tracker(self) -> None:
        self._world.say("tracker is gone")
        self.tracker = self._new_tracker()

    def move_tracker(self) -> None:
        """To another tracker and back; one that is paused goes on as if it still had it."""
        self._world.say("the partition of the facts moves")
        before, other = self.tracker, self._other_tracker
        if not self._busy(before):
            before.release()
        if other is None or self._busy(other):
            other = self._new_tracker()
        else:
            other.acquire()
        self.tracker, self._other_tracker = other, before

    def stop_tracker(self) -> None:
        """Between two of its turns; another one takes over."""
        if self._busy(self.tracker):
            return
        self._world.say("tracker is stopped")
        self.stopped.append(self.tracker)
        self.tracker = self._new_tracker()

    def wake_trackers(self) -> None:
        """They end the turn in which they were stopped; that they are replaced they hear then."""
        trackers, self.stopped = self.stopped, []
        for tracker in trackers:
            self._world.say("a tracker that was stopped goes on")
            for work in (TrackerProcess.flush, TrackerProcess.checkpoint):
                with self.turn(tracker) as awake:
                    if awake is not None:
                        work(awake)

    def reach_runners(self) -> None:
        """All faults are over: whoever was cut off returns, or its machine is gone for good."""
        self.return_runners()
        for runner in self.cut_off:
            self._bury(runner)
        self.cut_off.clear()

    @contextmanager
    def turn(self, process: T) -> Iterator[T | None]:
        """The process, if it is not paused in an earlier turn. A crash replaces it."""
        if self._busy(process):
            yield None
            return
        self._inside.append(process)
        try:
            yield process
        except Retryable:
            pass
        except Crash:
            self._crashed(process)
        finally:
            self._inside.remove(process)

    def _busy(self, process: object) -> bool:
        return any(process is other for other in self._inside)

    def _crashed(self, process: object) -> None:
        if process is self.runner:
            self.replace_runner()
        elif process is self.tracker:
            self.replace_tracker()
        elif isinstance(process, RunnerProcess):
            self.cut_off = [runner for runner in self.cut_off if runner is not process]
            self._bury(process)

    def _bury(self, runner: RunnerProcess) -> None:
        runner.dead = True
        for driver in self._world.alive():
            if driver.host is runner:
                if driver.busy and self._world.dice.random() < 0.5:
                    driver.forgotten = True
                else:
                    driver.kill()

    def _new_runner(self) -> RunnerProcess:
        def edge(name: str) -> None:
            self._world.interrupt("runner", name)
            if process.dead:
                raise Crash

        process = RunnerProcess(self._world, self.operations, self.topics, edge)
        return process

    def _new_tracker(self) -> TrackerProcess:
        """One that was replaced while it was paused still does what it was about to do."""
        world = self._world

        def edge(name: str) -> None:
            world.interrupt("tracker", name)

        return TrackerProcess(self.topics, world.redis, world.clocks.tracker, edge)
