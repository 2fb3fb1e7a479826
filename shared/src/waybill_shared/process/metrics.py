"""Counts, gauges and time spans of this process, by the names of `metrics_table`."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Final, TypeVar, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from waybill_shared.contract.version import VERSION
from waybill_shared.process.metrics_table import (
    METRICS,
    CounterName,
    GaugeName,
    HistogramName,
    Metric,
)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

CHILDREN_MAX: Final = 10_000  # combinations of labels that are remembered
M = TypeVar("M", Counter, Histogram)
Labels = tuple[str, ...]
"""Values of labels, in the order of the table."""


class _Gauge(Collector):
    """All values of one gauge. A reader sees those of one moment."""

    def __init__(self, name: str, metric: Metric) -> None:
        self.values: Mapping[Labels, float] = {}
        self._name = name
        self._metric = metric

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._metric.help, labels=self._metric.labels)
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        yield family


_counters: Final[dict[CounterName, Counter]] = {
    name: Counter(name, METRICS[name].help, METRICS[name].labels, registry=None)
    for name in get_args(CounterName)
}
_gauges: Final[dict[GaugeName, _Gauge]] = {
    name: _Gauge(name, METRICS[name]) for name in get_args(GaugeName)
}
_histograms: Final[dict[HistogramName, Histogram]] = {
    name: Histogram(
        name,
        METRICS[name].help,
        METRICS[name].labels,
        buckets=METRICS[name].buckets,
        registry=None,
    )
    for name in get_args(HistogramName)
}
_all: Final[dict[str, Counter | _Gauge | Histogram]] = {
    **{str(name): counter for name, counter in _counters.items()},
    **{str(name): gauge for name, gauge in _gauges.items()},
    **{str(name): histogram for name, histogram in _histograms.items()},
}


def count(name: CounterName, amount: int = 1, **labels: str) -> None:
    _child(_counters[name], tuple(labels.items())).inc(amount)


def observe(name: HistogramName, seconds: float, **labels: str) -> None:
    _child(_histograms[name], tuple(labels.items())).observe(seconds)


@lru_cache(maxsize=CHILDREN_MAX)
def _child(metric: M, labels: tuple[tuple[str, str], ...]) -> M:
    """Return the child of a metric for these labels.

    It is cached, because to find it again each time takes longer than to count.
    """
    return metric.labels(**dict(labels)) if labels else metric


def gauge(name: GaugeName, value: float) -> None:
    """Set a gauge without labels."""
    show(name, {(): value})


def show(name: GaugeName, values: Mapping[Labels, float]) -> None:
    """Set all present values of a gauge. What is not among them is not shown any more."""
    _gauges[name].values = values


def forget(pipeline: str) -> None:
    """Show nothing more of a pipeline that was deleted; gauges are shown again anyway."""
    for name, metric in METRICS.items():
        shown = _all[name]
        if "pipeline" in metric.labels and not isinstance(shown, _Gauge):
            shown.remove_by_labels({"pipeline": pipeline})
    _child.cache_clear()


def text_of(service: str, readiness: Mapping[str, str]) -> bytes:
    """Return the answer of /metrics: the metrics of this service, and those of its process."""
    show("waybill_build_info", {(VERSION,): 1})
    show("waybill_ready", {(check,): float(said == "ok") for check, said in readiness.items()})
    return generate_latest(_registry(service))


@cache
def _registry(service: str) -> CollectorRegistry:
    registry = CollectorRegistry()
    for name, metric in METRICS.items():
        if service in metric.services:
            registry.register(_all[name])
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
