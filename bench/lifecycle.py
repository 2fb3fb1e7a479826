"""R41 and R43 to R45: how long a pipeline takes to continue, to stop, to recover, to begin again.

The measure of R43 to R45 is our own side of R17, in the same rounds: how long a new pipeline takes
to start, from `apply` to `Running`. In all of them a spare driver is ready and warm.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from bench.contest import Contest, Turns
from bench.latency import TIMEOUT_S, reader
from bench.pipelines import order
from bench.starts import Pipelines, pipelines
from bench.surroundings import Surroundings
from waybill_shared.kafka.clients import make_producer, produce_and_wait

OURS_OF_R17 = "a new pipeline starts, from apply to Running: our side of R17"


@dataclass(frozen=True, slots=True)
class Idle:
    """A pipeline that runs, has had a record, and has nothing to do; what is done with it."""

    name: str
    pipelines: Pipelines

    def resume(self) -> float:
        self.pipelines.act(self.name, "pause")
        return self.pipelines.seconds(self.name, "resume")

    def start(self) -> float:
        self.pipelines.act(self.name, "stop")
        return self.pipelines.seconds(self.name, "start")

    def stop(self) -> float:
        spent = self.pipelines.seconds(self.name, "stop")
        self.pipelines.act(self.name, "start")
        self.pipelines.deliver(self.name)
        return spent

    def restart(self) -> float:
        return self.pipelines.seconds(self.name, "restart", **{"from": "earliest", "yes": "true"})


def recover(pipelines: Pipelines, around: Surroundings) -> float:
    """Measure from `kill -9` of a driver until a record that was sent then is committed.

    Each kill has a pipeline of its own, because one that fails again soon waits for longer.
    """
    with pipelines.one() as name:
        pipelines.deliver(name)
        pipelines.settle()
        driver = driver_of(around, pipelines.look_at(name)["uid"])
        producer = make_producer(around.kafka)
        with closing(reader(around.kafka, f"{name}.out")) as rows:
            began = time.perf_counter()
            os.kill(driver, signal.SIGKILL)
            produce_and_wait(producer, f"{name}.in", "1", order(1))
            assert rows.poll(TIMEOUT_S) is not None, "no row comes after the kill"
            return time.perf_counter() - began


def driver_of(around: Surroundings, uid: str) -> int:
    """Return the process that runs a pipeline."""
    folder = Path(around.environment["WAYBILL_STAGE_RUNNER_STATE_FOLDER"], "drivers")
    (run,) = folder.glob(f"*/runs/{uid}")
    home = str(run.parent.parent / "home.json")
    (pid,) = (each.pid for each in psutil.process_iter(["cmdline"]) if home in _words(each))
    return pid


def _words(process: psutil.Process) -> list[str]:
    return process.info["cmdline"] or []


@contextmanager
def resume_against_start(around: Surroundings) -> Iterator[Turns]:
    with idle(around) as one:
        yield Turns(ours=one.resume, theirs=one.start)


@contextmanager
def against_a_start(around: Surroundings, measure: Callable[[Idle], float]) -> Iterator[Turns]:
    with idle(around) as one:
        yield Turns(ours=partial(measure, one), theirs=one.pipelines.create)


@contextmanager
def kill_against_start(around: Surroundings) -> Iterator[Turns]:
    with pipelines(around, spares=1) as ours:
        yield Turns(ours=lambda: recover(ours, around), theirs=ours.create)


@contextmanager
def idle(around: Surroundings) -> Iterator[Idle]:
    with pipelines(around, spares=1) as ours, ours.one() as name:
        ours.deliver(name)
        yield Idle(name, ours)


R41 = Contest(
    key="R41",
    what="a pipeline continues",
    ours="after a pause: resume",
    theirs="after a stop: start, a spare driver is ready",
    unit="s",
    target=0.3,
    begin=resume_against_start,
)
R43 = Contest(
    key="R43",
    what="an idle pipeline stops",
    ours="mode checkpoint, until Stopped",
    theirs=OURS_OF_R17,
    unit="s",
    target=0.6,
    begin=partial(against_a_start, measure=Idle.stop),
)
R44 = Contest(
    key="R44",
    what="the driver of an idle pipeline is killed",
    ours="from kill -9 until the next run has committed a row",
    theirs=OURS_OF_R17,
    unit="s",
    target=2.5,
    begin=kill_against_start,
)
R45 = Contest(
    key="R45",
    what="an idle pipeline begins again",
    ours="restart, from the first record, until Running",
    theirs=OURS_OF_R17,
    unit="s",
    target=2.0,
    begin=partial(against_a_start, measure=Idle.restart),
)
