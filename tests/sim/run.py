"""Any number of scenarios by hand: `python tests/sim/run.py --seeds 0:100000`.

A failing seed is printed with its last steps; `--seeds 1234 --trace` prints all of that scenario.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from pathlib import Path


def main() -> int:
    sys.path[0] = str(Path(__file__).parents[1])
    from sim.simulation import Report, simulate

    arguments = _arguments()
    logging.disable(logging.CRITICAL)
    first, _, end = arguments.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    failed: list[Report] = []
    tokens = 0
    began = time.process_time()
    for done, seed in enumerate(seeds, start=1):
        report = simulate(seed, only=arguments.only)
        tokens += report.tokens
        if arguments.trace:
            print("\n".join(report.trace))
        if report.violations:
            failed.append(report)
            if len(failed) <= arguments.show:
                print(report)
        if done % 100 == 0:
            rate = done / (time.process_time() - began)
            print(f"\r{done} seeds, {rate:.0f}/s, {len(failed)} failed", end="", file=sys.stderr)
    counts = Counter(report.violations[0].invariant for report in failed)
    print(f"\n{len(seeds)} seeds, {tokens} tokens, {len(failed)} failed {dict(counts) or ''}")
    print(f"failing seeds: {[report.seed for report in failed][:50]}" if failed else "all hold")
    return int(bool(failed))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="one seed, or FIRST:END")
    parser.add_argument("--only", nargs="*", default=(), help="families of faults, often")
    parser.add_argument("--trace", action="store_true", help="print every step")
    parser.add_argument("--show", type=int, default=3, help="failures printed in full")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
