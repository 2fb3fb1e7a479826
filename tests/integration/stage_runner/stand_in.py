"""A driver that does what it is told, and nothing else: it has no Spark and no Kafka."""

import json
import os
import sys

EVENTS_FD = int(os.environ["WAYBILL_DRIVER_EVENTS_FD"])


def tell(**event: str) -> None:
    os.write(EVENTS_FD, json.dumps(event).encode() + b"\n")


def main() -> None:
    tell(kind="ready")
    for line in sys.stdin.buffer:
        order = json.loads(line)
        match order["kind"]:
            case "run":
                tell(kind="running", run_id=order["spec"]["run_id"])
            case "stop":
                tell(kind="ended", run_id=order["run_id"])
            case "check":
                tell(kind="checking", check_id=order["check_id"])
                tell(kind="checked", check_id=order["check_id"])
            case _:
                return


if __name__ == "__main__":
    main()
