"""Measures Waybill as ratios to what others need for the same, in one run on one machine.

`python -m bench [R1 R7 …]`: every contest, or those that are named.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.bad_records import R49
from bench.big import R31, R32, R33
from bench.contest import Contest, Result, measure, with_target, with_targets
from bench.endings import R46, R47, R48
from bench.feldera import R21
from bench.ingress import R4, R5, R19
from bench.latency import R1, R2
from bench.lifecycle import R41, R43, R44, R45
from bench.pasts import R42
from bench.rebuild import R15
from bench.replays import R49R
from bench.report import machine, save, table
from bench.sending import R14
from bench.sinks import R22, R22U, R23F
from bench.starts import R17, R18
from bench.surroundings import surroundings
from bench.tables import R29, R29H, R29K, R30
from bench.throughput import R3, R16, R24
from bench.tracker import R10
from bench.waking import R7, R9
from bench.watching import R20, R20M

OF_A_STAGE = (
    R1,
    R2,
    R3,
    R16,
    R21,
    R22,
    R22U,
    R23F,
    R24,
    R29,
    R29K,
    R29H,
    R30,
    R31,
    R32,
    R33,
    R47,
    R48,
    R49,
    R49R,
)
OF_SERVICES = (
    R4,
    R5,
    R7,
    R9,
    R10,
    R14,
    R15,
    R17,
    R18,
    R41,
    R42,
    R43,
    R44,
    R45,
    R46,
    R19,
    R20,
    R20M,
)
CONTESTS = {contest.key: contest for contest in (*OF_A_STAGE, *OF_SERVICES)}
ROUNDS = 5
FOLDER = Path(".bench")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help=f"of {', '.join(CONTESTS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each contest (default 5)")
    parser.add_argument("--out", type=Path, default=FOLDER, help="for JSON and plots (.bench)")
    chosen = parser.parse_args()
    unknown = [key for key in chosen.keys if key not in CONTESTS]
    if unknown:
        parser.error(f"no contest {unknown[0]}: there are {', '.join(CONTESTS)}")
    results = run([CONTESTS[key] for key in chosen.keys or CONTESTS], chosen.rounds)
    save(results, chosen.out)
    print(f"{machine()}; medians of interleaved rounds\n\n{table(results)}\n")
    print(f"all figures and plots: {chosen.out}")
    return 0


def run(contests: Sequence[Contest], rounds: int) -> list[Result]:
    results: list[Result] = []
    for contest in with_targets(contests):
        tell(f"{contest.key}: {contest.what}")
        with (
            tempfile.TemporaryDirectory(prefix="waybill-bench-") as folder,
            surroundings(Path(folder)) as around,
        ):
            results.append(measure(with_target(contest, results), around, rounds, tell))
    return results


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
