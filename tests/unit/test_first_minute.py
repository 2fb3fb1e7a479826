"""The parts of `make demo` that are measured, from the lines that it prints."""

import pytest

from bench.first_minute import NAMES, REST, STEPS, WHOLE, Run, Took, ended, table


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("python    Python 3.11.7 into .venv", None),
        ("packages  from requirements.lock: a download of about 580 MB", "python"),
        ("packages  from requirements.lock, 615 MB downloaded  21.6 s", "packages"),
        ("jars      of kafka and spark", None),
        ("jars      52 of kafka and spark, 55 MB downloaded  18.8 s", "jars"),
        ("archive   of Spark's classes, made once  31.0 s", "archive"),
        ("  stack          Kafka, Valkey, services, gateway  5.1 s", "stack"),
        ("  apply          examples/orders.yaml: Kafka, Spark, Iceberg  6.3 s", "apply"),
        ("                 4.5 s  load  lake  committed  3 rows, batch 5", None),
        ("  follow         the token, through both stages  4.5 s", "follow"),
        ("  stop           everything; what it stored is kept in .waybill  2.0 s", "stop"),
        ("26.4 s in all: stack 5.1, apply 9.2", None),
        ("", None),
    ],
)
def test_a_part_ends_with_its_line(line: str, part: str | None) -> None:
    assert ended(line) == (None if part is None else STEPS[part])


def test_table_has_medians_of_seconds_and_megabytes() -> None:
    def run(wall_s: float, **more: float) -> Run:
        parts = {WHOLE: Took(wall_s=wall_s, cpu_s=2 * wall_s), REST: Took(wall_s=1, cpu_s=1)}
        return Run(parts=parts, **more)

    runs = [run(30, moved_mb=700, kept_mb=1_200), run(50, moved_mb=702, kept_mb=1_200)]
    lines = table(runs, [run(20, moved_mb=0, kept_mb=1_201)]).splitlines()
    assert len(lines) == 2 + len(NAMES) + 2
    assert lines[2] == "| the whole | 40.0 s (80.0 s) | 20.0 s (40.0 s) |"
    assert lines[-2:] == [
        "| over the network, MB | 701 | 0 |",
        "| on the disk, MB | 1,200 | 1,201 |",
    ]
