"""Where the time of R1 goes: from the call that produces a record until its token is complete.

`python -m bench.profile`. The edges are those that anybody can see: the delivery report, Spark's
checkpoint, the times in the commit, the answer. Medians, so the parts need not add up exactly.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from bench.latency import PAUSE_S_MAX, SEED, TIMEOUT_S, Courier, IssuedTokens
from bench.pipelines import waybill
from bench.report import machine
from bench.surroundings import PREFIX, Surroundings, surroundings
from waybill_shared.contract import codec
from waybill_shared.contract.events import Commit, Fact
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.process.clock import SystemClock

RECORDS: Final = 100
FOLDER: Final = Path(".bench")
EDGES: Final = (
    ("Kafka has the record", "ingress or a producer"),
    ("Spark has noticed it, and has written down what the batch takes", "Spark"),
    ("Spark has planned the query", "Spark"),
    ("the rows are read", "Spark, PyArrow"),
    ("the sink has committed", "stage_runner"),
    ("every reader can see it, and the commit is sent", "stage_runner"),
    ("the token is answered", "token_tracker, status"),
)
Times = tuple[float, ...]
"""Milliseconds since the record was produced, at each edge."""


class Commits:
    """The commits of the pipeline that is measured, as they come."""

    def __init__(self, kafka: str) -> None:
        topic = f"{PREFIX}.commits"
        admin = make_admin(kafka)
        ends = admin.ends(topic, admin.identify([topic])[topic].partitions)
        self._consumer: Consumer = make_consumer(kafka, "profile")
        self._consumer.assign([TopicPartition(topic, p, end) for p, end in ends.items()])

    def close(self) -> None:
        self._consumer.close()

    def of(self, partition: int, offset: int) -> tuple[Commit, int]:
        """The first that covers this place, and when it was sent."""
        while True:
            message = self._consumer.poll(TIMEOUT_S)
            if message is None or message.error() is not None:
                raise TimeoutError(f"no commit came in {TIMEOUT_S} s")
            value = message.value()
            assert value is not None
            body = codec.decode(Fact, value).body
            if isinstance(body, Commit) and _covers(body, partition, offset):
                return body, message.timestamp()[1]


def _covers(commit: Commit, partition: int, offset: int) -> bool:
    return any(
        run.partition == partition and run.start <= offset < run.end for run in commit.inputs
    )


@contextmanager
def followed(around: Surroundings) -> Iterator["Followed"]:
    with waybill(around) as pipeline, ExitStack() as stack:
        courier = Courier(around, pipeline.way, stack)
        tokens = IssuedTokens(around, pipeline, stack)
        courier.warm_up()
        commits = stack.enter_context(closing(Commits(around.kafka)))
        yield Followed(courier, tokens, commits, around.folder / "stage_runner")


class Followed:
    def __init__(
        self, courier: Courier, tokens: IssuedTokens, commits: Commits, state: Path
    ) -> None:
        self._courier = courier
        self._tokens = tokens
        self._commits = commits
        self._state = state
        self._clock = SystemClock()

    def one(self) -> Times:
        began = self._clock.now_ms()
        place = self._courier.send()
        acknowledged = self._clock.now_ms()
        self._tokens.await_complete(*place)
        answered = self._clock.now_ms()
        self._courier.take()
        commit, sent = self._commits.of(*place)
        noticed = self._noticed(commit.batch.batch_id)
        edges = (
            acknowledged,
            noticed,
            commit.batch.started_at,
            commit.batch.write_started_at,
            commit.batch.committed_at,
            sent,
        )
        return tuple(edge - began for edge in (*edges, answered))

    def _noticed(self, batch_id: int) -> float:
        (file,) = self._state.glob(f"*/checkpoints/*/*/offsets/{batch_id}")
        return file.stat().st_mtime_ns / 1_000_000


def measure(records: int) -> list[Times]:
    dice = random.Random(SEED)
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="waybill-profile-") as folder,
        surroundings(Path(folder)) as around,
        followed(around) as way,
    ):
        for number in range(records):
            time.sleep(dice.uniform(0, PAUSE_S_MAX))
            found.append(way.one())
            if (number + 1) % 20 == 0:
                print(f"{number + 1} of {records} records", file=sys.stderr, flush=True)
    return found


def parts(times: Sequence[Times]) -> list[float]:
    """The median time from each edge to the next."""
    steps = [[edge - before for before, edge in zip((0, *one), one, strict=False)] for one in times]
    return [statistics.median(values) for values in zip(*steps, strict=True)]


def table(times: Sequence[Times]) -> str:
    """Markdown: until when, who needed it, how long, and when that was."""
    until = [statistics.median(values) for values in zip(*times, strict=True)]
    lines = ["| until | whose | ms | ms since it was produced |", "|---|---|---|---|"]
    for (edge, whose), part, at in zip(EDGES, parts(times), until, strict=True):
        lines.append(f"| {edge} | {whose} | {part:.1f} | {at:.1f} |")
    return "\n".join(lines)


def plot(times: Sequence[Times], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    axes = figure.subplots()
    at = 0.0
    for (edge, whose), part in zip(EDGES, parts(times), strict=True):
        axes.barh(0, part, left=at, label=f"{edge} ({whose}): {part:.1f} ms")
        at += part
    axes.set_yticks([])
    axes.set_xlabel("milliseconds")
    axes.set_title("R1: produced until its token is complete", loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), fontsize="small")
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.profile",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--records", type=int, default=RECORDS, help=f"(default {RECORDS})")
    parser.add_argument("--out", type=Path, default=FOLDER, help="for JSON and the plot (.bench)")
    chosen = parser.parse_args()
    times = measure(chosen.records)
    chosen.out.mkdir(parents=True, exist_ok=True)
    edges = [edge for edge, _ in EDGES]
    found = {"machine": machine(), "edges": edges, "milliseconds": times}
    (chosen.out / "profile.json").write_text(json.dumps(found, indent=2) + "\n")
    plot(times, chosen.out / "profile.png")
    print(f"{machine()}; {chosen.records} records, medians\n\n{table(times)}\n")
    print(f"all figures and the plot: {chosen.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
