"""A local stack as its state file tells it."""

from pathlib import Path

import psutil

from waybill_local.state import ProcessState, StackPhase, StackState


def make_stack(folder: Path, process: psutil.Process, *, above: int = 0) -> StackState:
    """Kafka runs there, and `process` is its process and its supervisor;
    its ports are so far `above` the usual ones."""
    pid, began = process.pid, process.create_time()
    kafka = ProcessState(
        name="kafka",
        pid=pid,
        began=began,
        address=f"127.0.0.1:{9092 + above}",
        version="4.3.1",
        state=StackPhase.READY,
    )
    return StackState(
        folder=folder,
        phase=StackPhase.READY,
        version="0.1.0",
        started_at="2026-11-21T09:00:00+00:00",
        supervisor_pid=pid,
        supervisor_began=began,
        ports={"gateway": 8080 + above, "kafka": 9092 + above, "valkey": 6379 + above},
        processes=(kafka,),
    )
