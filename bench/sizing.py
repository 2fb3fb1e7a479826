"""`python -m bench.sizing`: what a running local stack needs: CPU, memory and disk of each process.

Run it in the folder of the stack, with `examples/orders.yaml` applied. It sends the records itself;
its own CPU time is not counted. CPU is in percent of one core, from CPU seconds.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from urllib.request import Request, urlopen

import psutil

from waybill_local.stack import StackState, read_state

TICK_S = 0.1
TIMEOUT_S = 60.0
MB = 1_000_000


def main() -> None:
    arguments = _arguments()
    state = read_state(Path.cwd())
    if state is None:
        raise SystemExit("no stack runs in this folder: `waybill up --detach`")
    ingress = f"http://127.0.0.1:{state.ports['ingress']}"
    for rate in arguments.rates:
        _send_for(arguments.warm_up_s, rate, ingress, arguments.pipelines)
        before, disk = _cpu_ms(state), _disk_bytes(state.folder)
        took = _send_for(arguments.seconds, rate, ingress, arguments.pipelines)
        after, grown = _cpu_ms(state), _disk_bytes(state.folder) - disk
        _print(f"{rate} records/s", after - before, _memory(state), took)
        print(f"  disk grew by {grown / MB:.1f} MB in {took:.0f} s", flush=True)


def processes(state: StackState) -> list[tuple[str, psutil.Process]]:
    """All of the stack, by what they are; a driver is Python and, below it, Java."""
    found: list[tuple[str, psutil.Process]] = []
    for each in state.processes:
        parent = psutil.Process(each.pid)
        found.append((each.name, parent))
        for child in parent.children(recursive=True):
            name = "driver: java" if "java" in child.name() else "driver: python"
            found.append((name, child))
    return found


def _cpu_ms(state: StackState) -> Counter[str]:
    spent: Counter[str] = Counter()
    for name, process in processes(state):
        times = process.cpu_times()
        spent[name] += round(1000 * (times.user + times.system))
    return spent


def _memory(state: StackState) -> Counter[str]:
    """Proportional: what two processes share counts half in each."""
    memory: Counter[str] = Counter()
    for name, process in processes(state):
        memory[name] += process.memory_full_info().pss
    return memory


def _disk_bytes(folder: Path) -> int:
    """What is really written: Kafka makes its index files longer than what is in them."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _send_for(seconds: float, rate: int, ingress: str, pipelines: list[str]) -> float:
    began, sent = time.perf_counter(), 0
    while (now := time.perf_counter() - began) < seconds:
        due = int(now * rate) - sent
        for pipeline in pipelines if due else ():
            _send(f"{ingress}/v1/pipelines/{pipeline}/inputs/orders/records", sent, due)
        sent += due
        time.sleep(TICK_S)
    return time.perf_counter() - began


def _send(url: str, first: int, count: int) -> None:
    rows = [
        {"order_id": number, "customer": f"customer {number}", "amount": 12.5}
        for number in range(first, first + count)
    ]
    body = "\n".join(json.dumps(row) for row in rows).encode()
    request = Request(url, body, {"Content-Type": "application/x-ndjson"})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        answer.read()


def _print(title: str, cpu: Counter[str], memory: Counter[str], seconds: float) -> None:
    print(f"{title}\n  {'':16}{'CPU %':>8}{'MB':>8}")
    for name in sorted(memory):
        print(f"  {name:16}{cpu[name] / 10 / seconds:8.1f}{memory[name] / MB:8.0f}")
    print(f"  {'all':16}{cpu.total() / 10 / seconds:8.1f}{memory.total() / MB:8.0f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.sizing", description=__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=[0, 100, 1000])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm-up-s", type=float, default=20.0)
    parser.add_argument("--pipelines", nargs="+", default=["orders"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
