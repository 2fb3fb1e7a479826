"""What a part of the deep tests is, and which of them CI runs after all others.

`python tests/deep_parts.py SECONDS` prints the files that two workers finish in so many seconds.
It asks git, which may know nothing but one commit.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from tiers import BUDGET_S

ROOT = Path(__file__).parents[1]
WORKERS = 2
PARTS = 8
PART_S = 600.0  # `make test-deep PART=2/8` takes ten minutes
BEGIN_S = 60.0  # until the first test runs: its collection, and a stack
COMMITS = 20
"""What the last commits touched is what has changed: a clone may know no other branch."""
TIMES = ROOT / ".bench" / "test_times.json"

DEEP_S = {
    "e2e/existing_clusters/test_existing_clusters.py": 85,
    "e2e/test_bad_record_search.py": 60,
    "e2e/test_big_batches.py": 160,
    "e2e/test_big_batches_killed.py": 345,
    "e2e/test_big_batches_lost.py": 130,
    "e2e/test_big_batches_paused.py": 475,
    "e2e/test_browser.py": 147,
    "e2e/test_browser_bad_days.py": 200,
    "e2e/test_browser_bad_tokens.py": 45,
    "e2e/test_changes.py": 100,
    "e2e/test_checkpoints.py": 85,
    "e2e/test_checks.py": 80,
    "e2e/test_console.py": 15,
    "e2e/test_crashes.py": 90,
    "e2e/test_dead_letters.py": 180,
    "e2e/test_deletion.py": 35,
    "e2e/test_ending_pipelines.py": 120,
    "e2e/test_feldera.py": 155,
    "e2e/test_first_hour.py": 55,
    "e2e/test_formats.py": 12,
    "e2e/test_four_upserts.py": 90,
    "e2e/test_iceberg.py": 135,
    "e2e/test_kafka_sink.py": 20,
    "e2e/test_killed_runner.py": 300,
    "e2e/test_lag.py": 40,
    "e2e/test_leftovers.py": 12,
    "e2e/test_maintenance.py": 80,
    "e2e/test_maintenance_under_load.py": 90,
    "e2e/test_many_pauses.py": 90,
    "e2e/test_never_a_lie.py": 130,
    "e2e/test_one_table.py": 50,
    "e2e/test_openapi.py": 85,
    "e2e/test_partitions.py": 30,
    "e2e/test_pausing.py": 60,
    "e2e/test_pieces.py": 45,
    "e2e/test_postgres.py": 65,
    "e2e/test_putting.py": 60,
    "e2e/test_renamed_pipelines.py": 180,
    "e2e/test_renames.py": 60,
    "e2e/test_replays_killed.py": 120,
    "e2e/test_returns.py": 35,
    "e2e/test_rewinds.py": 90,
    "e2e/test_schedules.py": 60,
    "e2e/test_sdk.py": 25,
    "e2e/test_second_day.py": 30,
    "e2e/test_services.py": 100,
    "e2e/test_shapes.py": 25,
    "e2e/test_stop_modes.py": 70,
    "e2e/test_stopped_stages.py": 190,
    "e2e/test_stops_in_each_phase.py": 150,
    "e2e/test_stops_under_load.py": 130,
    "e2e/test_stranger_alters.py": 60,
    "e2e/test_strangers.py": 60,
    "e2e/test_supply_chain.py": 25,
    "e2e/test_switch.py": 35,
    "e2e/test_through_changes.py": 90,
    "e2e/test_tokens.py": 15,
    "e2e/test_topics.py": 125,
    "e2e/test_truth.py": 120,
    "e2e/test_two_drivers.py": 140,
    "e2e/test_two_runners.py": 40,
    "e2e/test_validate.py": 15,
    "e2e/test_watches.py": 120,
    "integration/ingress/test_bodies.py": 30,
    "integration/ingress/test_connectors.py": 40,
    "integration/ingress/test_connectors_under_faults.py": 90,
    "integration/ingress/test_keys_in_time.py": 30,
    "integration/ingress/test_keys_on_a_cluster.py": 35,
    "integration/ingress/test_repeats_under_faults.py": 100,
    "integration/ingress/test_repeats_without_kafka.py": 20,
    "integration/ingress/test_replays.py": 20,
    "integration/ingress/test_sending.py": 20,
    "integration/local_stack/test_again.py": 55,
    "integration/local_stack/test_big_batches_on_a_cluster.py": 115,
    "integration/local_stack/test_first_pipeline.py": 25,
    "integration/local_stack/test_first_start.py": 27,
    "integration/local_stack/test_hanging_batch.py": 150,
    "integration/local_stack/test_installed.py": 35,
    "integration/local_stack/test_killed_broker.py": 15,
    "integration/local_stack/test_life.py": 55,
    "integration/local_stack/test_rescaling.py": 60,
    "integration/local_stack/test_spark_cluster.py": 70,
    "integration/local_stack/test_stopped_drivers.py": 180,
    "integration/local_stack/test_trusted.py": 35,
    "integration/local_stack/test_two_million_rows.py": 280,
    "integration/redis/test_loss.py": 30,
    "integration/redis/test_markers.py": 15,
    "integration/spark/test_csv_records.py": 15,
    "integration/spark/test_decode_report.py": 80,
    "integration/spark/test_distributed_postgres.py": 20,
    "integration/spark/test_distributed_rows.py": 35,
    "integration/spark/test_guard.py": 25,
    "integration/spark/test_hostile.py": 60,
    "integration/spark/test_iceberg_catalogs.py": 90,
    "integration/spark/test_iceberg_kills.py": 90,
    "integration/spark/test_iceberg_modes.py": 60,
    "integration/spark/test_iceberg_strangers.py": 25,
    "integration/spark/test_iceberg_tasks.py": 15,
    "integration/spark/test_journal.py": 15,
    "integration/spark/test_kafka_sink.py": 15,
    "integration/spark/test_planned.py": 15,
    "integration/spark/test_topic_source.py": 25,
    "integration/status/test_history.py": 45,
    "integration/status/test_past.py": 12,
    "integration/status/test_redis_lost.py": 12,
    "integration/status/test_watches.py": 15,
    "integration/test_brokers.py": 50,
    "integration/test_kafka_admin.py": 15,
    "integration/token_tracker/test_replaced.py": 12,
    "integration/token_tracker/test_silent_kafka.py": 20,
    "sim/test_invariants.py": 115,
    "unit/ingress/test_idempotency.py": 30,
    "unit/status/test_hub.py": 10,
}
"""Seconds that the deep tests of a file take one after the other on a quiet machine."""

AREAS = {
    "console": ("e2e/test_browser",),
    "client": ("e2e/test_first_hour", "e2e/test_sdk", "integration/ingress/test_sending"),
    "examples": ("e2e/test_truth", "e2e/test_first_hour"),
    "infra/local": ("integration/local_stack",),
    "services/ingress": (
        "integration/ingress",
        "unit/ingress",
        "e2e/test_openapi",
        "e2e/test_second_day",
        "e2e/test_services",
        "e2e/test_supply_chain",
        "e2e/test_validate",
    ),
    "services/stage_runner": (
        "e2e/test_changes",
        "e2e/test_checks",
        "e2e/test_deletion",
        "e2e/test_ending_",
        "e2e/test_killed_runner",
        "e2e/test_many_pauses",
        "e2e/test_pausing",
        "e2e/test_putting",
        "e2e/test_rename",
        "e2e/test_returns",
        "e2e/test_rewinds",
        "e2e/test_schedules",
        "e2e/test_shapes",
        "e2e/test_stop",
        "e2e/test_switch",
        "e2e/test_through_changes",
        "e2e/test_topics",
        "e2e/test_two_",
        "e2e/test_validate",
    ),
    "services/status": (
        "integration/redis",
        "integration/status",
        "unit/status",
        "e2e/test_browser_bad_",
        "e2e/test_feldera",
        "e2e/test_never_a_lie",
        "e2e/test_openapi",
        "e2e/test_tokens",
        "e2e/test_watches",
    ),
    "services/token_tracker": (
        "e2e/test_lag",
        "e2e/test_partitions",
        "e2e/test_services",
        "e2e/test_shapes",
        "integration/redis",
        "integration/token_tracker",
    ),
    "shared/src/waybill_shared/access": ("e2e/existing_clusters",),
    "shared/src/waybill_shared/contract": ("sim",),
    "shared/src/waybill_shared/kafka": ("integration/test_",),
    "spark/src/waybill_spark/driver": (
        "e2e/test_big_batches",
        "e2e/test_checkpoints",
        "e2e/test_formats",
        "e2e/test_leftovers",
        "e2e/test_pieces",
        "e2e/test_strangers",
        "e2e/test_two_drivers",
        "integration/local_stack/test_big_batches",
        "integration/local_stack/test_spark_cluster",
        "integration/spark/test_planned",
        "integration/spark/test_topic_source",
    ),
    "spark/src/waybill_spark/guard": (
        "integration/spark/test_guard",
        "integration/spark/test_hostile",
    ),
    "spark/src/waybill_spark/kafka": ("integration/spark/test_journal",),
    "spark/src/waybill_spark/sinks/console": ("e2e/test_console",),
    "spark/src/waybill_spark/sinks/iceberg": (
        "e2e/test_four_upserts",
        "e2e/test_iceberg",
        "e2e/test_one_table",
        "e2e/test_stranger_alters",
        "e2e/test_maintenance",
        "integration/spark/test_iceberg",
    ),
    "spark/src/waybill_spark/sinks/kafka": (
        "e2e/test_kafka_sink",
        "e2e/test_crashes",
        "integration/spark/test_kafka_sink",
    ),
    "spark/src/waybill_spark/sinks/postgres": (
        "e2e/test_crashes",
        "e2e/test_postgres",
        "integration/spark/test_distributed_",
    ),
    "spark/src/waybill_spark/tracking": (
        "e2e/test_bad_record_search",
        "e2e/test_checkpoints",
        "e2e/test_dead_letters",
        "e2e/test_pieces",
        "e2e/test_replays_killed",
        "e2e/test_stopped_stages",
        "integration/spark/test_csv_records",
        "integration/spark/test_decode_report",
    ),
}
"""Where a change is felt: how the names of deep tests begin that are about a folder's code."""


def parts(count: int) -> list[set[str]]:
    """Divide all deep files into `count` parts that take about the same time."""
    made: list[set[str]] = [set() for _ in range(count)]
    for file in sorted(DEEP_S, key=lambda each: (-DEEP_S[each], each)):
        min(made, key=lambda part: sum(DEEP_S[each] for each in part)).add(file)
    return made


def part_of(text: str) -> set[str]:
    """Return the files of a part that is written as 2/8."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"a part is written as 2/{PARTS}, not as {text}")
    return parts(int(count))[int(number) - 1]


def turn(folder: Path) -> int:
    """Return which part is next, from 1: each commit brings another one."""
    if _git(folder, "rev-parse", "--is-shallow-repository") == "true":
        number = int(_git(folder, "rev-parse", "HEAD"), base=16)
    else:
        number = int(_git(folder, "rev-list", "--count", "HEAD") or 0)
    return number % PARTS + 1


def changed(folder: Path) -> set[str]:
    """Return the files that the last commits touched, as far as the clone knows."""
    return set(_git(folder, "log", f"-{COMMITS}", "--name-only", "--format=").split())


def about(files: Collection[str]) -> list[str]:
    """Return the deep tests of the areas to which changed `files` belong."""
    touched = [area for area in AREAS if any(file.startswith(f"{area}/") for file in files)]
    begins = tuple(begin for area in touched for begin in AREAS[area])
    return [deep for deep in DEEP_S if deep.startswith(begins)]


def fitting(files: Iterable[str], left_s: float) -> list[str]:
    """Return of `files`, each once and in this order, what ends within `left_s` seconds."""
    chosen: list[str] = []
    most = max(0.0, left_s - BEGIN_S)
    for file in dict.fromkeys(files):
        if DEEP_S[file] <= most and sum(DEEP_S[e] for e in (*chosen, file)) <= most * WORKERS:
            chosen.append(file)
    return chosen


def slowness() -> float:
    """Return how much longer the run before this one took than its budget."""
    if not TIMES.exists():
        return 1.0
    files = json.loads(TIMES.read_text()).values()
    took = sum(sum(seconds for name, seconds in each.items() if name != "cpu") for each in files)
    return max(1.0, took / sum(BUDGET_S.values()))


def choose(left_s: float) -> list[str]:
    """Return the files that CI runs, and say on stderr why these."""
    number, slow, touched = turn(ROOT), slowness(), changed(ROOT)
    changed_themselves = [deep for deep in DEEP_S if f"tests/{deep}" in touched]
    wanted = (*changed_themselves, *sorted(parts(PARTS)[number - 1]), *about(touched))
    files = fitting(wanted, left_s / slow)
    for line in (
        f"deep tests: part {number}/{PARTS}, and those of what the last {COMMITS} commits touched",
        f"{left_s:.0f} s are left, on a machine {slow:.1f} times as slow as a quiet one",
        f"not run for lack of time: {', '.join(sorted({*wanted} - {*files})) or 'none'}",
    ):
        print(line, file=sys.stderr)
    return files


def _git(folder: Path, *arguments: str) -> str:
    """Return what git says, or nothing where it knows no commit."""
    run = subprocess.run(
        ("git", "-C", str(folder), *arguments), capture_output=True, text=True, check=False
    )
    return run.stdout.strip() if run.returncode == 0 else ""


if __name__ == "__main__":
    print(*(f"tests/{file}" for file in choose(float(sys.argv[1]))))
