"""`python -m examples.truth`: four faults, and what ordinary PySpark and Waybill make of them.

Starts a stack of its own in a temporary folder and leaves nothing behind. Exit codes: 0 Waybill
said what really happened, 1 it did not.
"""

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from examples.truth.bare_side import BareSide
from examples.truth.faults import FAULTS
from examples.truth.report import Finding, Story, table
from examples.truth.scene import Scene
from examples.truth.topics import Topics
from examples.truth.waiting import Late
from waybill import Client, WaybillError
from waybill_local.stack import Options, StackError, StackState, down, up
from waybill_shared.contract.errors import Retryable
from waybill_shared.process.failpoints import FOLDER

ANY_PORTS: Final = Options(gateway_port=0, kafka_port=0, valkey_port=0)
INTERRUPTED: Final = 130  # as shells have it


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # all is stopped then too
    story = Story()
    try:
        with tempfile.TemporaryDirectory(prefix="waybill-truth-") as name:
            findings = _find_out(Path(name), story)
    except StackError as error:
        print(error, flush=True)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    print("", *table(findings), f"{story.seconds:.1f} s in all", sep="\n")
    return int(any(finding.wrong for finding in findings.values()))


def _find_out(folder: Path, story: Story) -> dict[str, Finding]:
    failpoints, bare_folder = folder / "failpoints", folder / "bare"
    failpoints.mkdir()
    bare_folder.mkdir()
    with _stack(folder, failpoints, story) as stack, Client(stack.url) as client:
        bare = BareSide(stack.kafka, bare_folder)
        bare.start()
        scene = Scene(
            client=client,
            stack=stack,
            failpoints=failpoints,
            topics=Topics(stack.kafka),
            bare=bare,
            story=story,
        )
        try:
            return {name: _found(name, fault, scene) for name, fault in FAULTS.items()}
        finally:
            bare.kill()


@contextmanager
def _stack(folder: Path, failpoints: Path, story: Story) -> Iterator[StackState]:
    environment = {**os.environ, FOLDER: str(failpoints)}
    state = up(folder, lambda report: None, options=ANY_PORTS, tied=True, environment=environment)
    story.tell("stack", "Kafka, Valkey, services and gateway run")
    try:
        yield state
    finally:
        down(folder, lambda report: None)
        story.tell("stack", "stopped")


def _found(name: str, fault: Callable[[Scene], Finding], scene: Scene) -> Finding:
    """What cannot be found out is told as well, and the next fault has its turn."""
    print(f"\n{name}", flush=True)
    try:
        return fault(scene)
    except (WaybillError, Late, Retryable, KafkaException) as error:
        scene.story.tell("failed", str(error))
        scene.bare.kill()
        scene.bare.start()
        return Finding(wrong=(f"not found out: {type(error).__name__}: {error}",))


if __name__ == "__main__":
    raise SystemExit(main())
