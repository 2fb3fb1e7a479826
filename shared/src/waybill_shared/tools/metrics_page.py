"""Writes docs/metrics.md from the table of metrics."""

from typing import Final, get_args

from waybill_shared.contract.routes import SERVICES
from waybill_shared.process.metrics_table import METRICS, CounterName, GaugeName

INTRODUCTION: Final = """# Metrics

<!-- Made by `python -m waybill_shared.tools.metrics_page > docs/metrics.md`. Change the table
     `waybill_shared.process.metrics_table.METRICS`, not this file. -->

Each service shows its own metrics, and those of its process (`process_…`, `python_…`), at
`/metrics` on its port, and through the gateway at `/metrics/SERVICE`. The only labels are those
named here: there is no token and no request id in them, and a pipeline has no series after its
deletion. Lag, commits and batches of all stages come from `token_tracker`, which reads every
commit; drivers have no port. If a service runs as several processes, each shows its part: add them.

A histogram NAME also has NAME_bucket, NAME_sum and NAME_count. What to watch, and what to do:
[operations.md](operations.md).
"""


def render() -> str:
    """Render the complete document."""
    parts = [INTRODUCTION]
    for service in SERVICES:
        rows = [_row(name) for name in METRICS if service in METRICS[name].services]
        head = ["| metric | type | labels | what it says | worry |", "|---|---|---|---|---|"]
        parts.append("\n".join([f"## {service}", "", *head, *rows, ""]))
    return "\n".join(parts)


def _row(name: str) -> str:
    metric = next(metric for known, metric in METRICS.items() if known == name)
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{name}` | {_kind(name)} | {labels} | {metric.says} | {metric.worry} |"


def _kind(name: str) -> str:
    if name in get_args(CounterName):
        return "counter"
    return "gauge" if name in get_args(GaugeName) else "histogram"


if __name__ == "__main__":
    print(render(), end="")
