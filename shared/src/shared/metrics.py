"""Every metric name, each with its type and meaning; a misspelt one does not type-check."""

from typing import Final, Literal

from prometheus_client import Counter, Gauge, Histogram

CounterName = Literal[
    # requests answered, by route and status
    "waybill_http_requests_total",
    # records acknowledged by Kafka, by pipeline and input
    "waybill_records_accepted_total",
    # records refused by an input's schema, by pipeline and input
    "waybill_records_rejected_total",
    # tokens made, by how they were born
    "waybill_tokens_issued_total",
    # outcomes answered, by outcome
    "waybill_outcomes_total",
    # facts applied to the tracker's slots
    "waybill_facts_applied_total",
    # commands answered, by action and state
    "waybill_commands_total",
    # drivers started, by reason
    "waybill_driver_starts_total",
]
GaugeName = Literal[
    # open long polls and event streams
    "waybill_waiters",
    # pipelines that this process holds
    "waybill_pipelines",
]
HistogramName = Literal[
    # seconds from the sink's commit to the slot that shows it
    "waybill_apply_delay_seconds",
    # seconds a request took, by route
    "waybill_http_request_seconds",
]

COUNTERS: Final[dict[CounterName, tuple[str, tuple[str, ...]]]] = {
    "waybill_http_requests_total": ("Requests answered", ("route", "status")),
    "waybill_records_accepted_total": ("Records acknowledged by Kafka", ("pipeline", "input")),
    "waybill_records_rejected_total": ("Records refused by a schema", ("pipeline", "input")),
    "waybill_tokens_issued_total": ("Tokens made", ("born",)),
    "waybill_outcomes_total": ("Outcomes answered", ("outcome",)),
    "waybill_facts_applied_total": ("Facts applied to slots", ("kind",)),
    "waybill_commands_total": ("Commands answered", ("action", "state")),
    "waybill_driver_starts_total": ("Drivers started", ("reason",)),
}
GAUGES: Final[dict[GaugeName, str]] = {
    "waybill_waiters": "Open long polls and event streams",
    "waybill_pipelines": "Pipelines that this process holds",
}
HISTOGRAMS: Final[dict[HistogramName, tuple[str, tuple[str, ...]]]] = {
    "waybill_apply_delay_seconds": ("From a sink's commit to the slot that shows it", ()),
    "waybill_http_request_seconds": ("Time that a request took", ("route",)),
}

_counters = {n: Counter(n, text, labels) for n, (text, labels) in COUNTERS.items()}
_gauges = {n: Gauge(n, text) for n, text in GAUGES.items()}
_histograms = {n: Histogram(n, text, labels) for n, (text, labels) in HISTOGRAMS.items()}


def count(name: CounterName, amount: int = 1, **labels: str) -> None:
    (_counters[name].labels(**labels) if labels else _counters[name]).inc(amount)


def gauge(name: GaugeName, value: float) -> None:
    _gauges[name].set(value)


def observe(name: HistogramName, seconds: float, **labels: str) -> None:
    (_histograms[name].labels(**labels) if labels else _histograms[name]).observe(seconds)
