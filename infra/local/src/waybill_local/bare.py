"""`python -m waybill_local.bare --folder DIR`: Kafka and Valkey alone, for work on one service.

Prints one line of JSON with the addresses, then runs until SIGTERM or Ctrl-C.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from waybill_local import broker, jars, valkey
from waybill_local.errors import StackError
from waybill_local.folders import make_private
from waybill_local.java import find_java
from waybill_local.ports import address, pick
from waybill_local.processes import POLL_S, Child, Interrupted, start, stop, wait_ready


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m waybill_local.bare", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where data and logs go")
    folder = make_private(parser.parse_args().folder.resolve())
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: signals.append(received))
    try:
        _run(folder, signals)
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    except Interrupted:
        pass
    return 0


def _run(folder: Path, signals: list[int]) -> None:
    java = find_java()
    folders = jars.retrieve_all(java=java, progress=lambda progress: None)
    ports = pick({"kafka": 0, "controller": 0, "valkey": 0})
    kafka = broker.Broker(
        java=java,
        jars=jars.jar_set(jars.KAFKA),
        folder=folder / "kafka",
        port=ports["kafka"],
        controller_port=ports["controller"],
    )
    logs = make_private(folder / "logs")
    children: list[Child] = []
    try:
        children.append(start(valkey.spec(folder / "valkey", ports["valkey"]), logs))
        children.append(start(broker.spec(kafka), logs))
        wait_ready(children, interrupted=lambda: bool(signals), on_ready=lambda child: None)
        addresses = {
            "kafka": address(ports["kafka"]),
            "redis": f"redis://{address(ports['valkey'])}/0",
            "java": str(java.path),
            "spark_jars": str(folders[jars.SPARK]),
        }
        print(json.dumps(addresses), flush=True)
        while not signals and all(child.alive for child in children):
            time.sleep(POLL_S)
    finally:
        stop(
            children,
            forced=lambda: len(signals) > 1,
            on_stopped=lambda child, good: (
                kafka.archive.keep(good=good) if child.spec.name == broker.NAME else None
            ),
        )


if __name__ == "__main__":
    raise SystemExit(main())
