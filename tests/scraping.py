"""Reads what Prometheus would read of a service."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Scrape:
    """All samples of one service at one moment."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float | None:
        """None: there is no such series."""
        return self.samples.get((name, frozenset(labels.items())))

    def labels(self, name: str) -> list[dict[str, str]]:
        """Of each series of that name."""
        return [dict(has) for called, has in self.samples if called == name]

    def names(self, **labels: str) -> set[str]:
        """Of all that has a series with these labels, and any others."""
        return {name for name, has in self.samples if has >= labels.items()}


def read_scrape(text: str) -> Scrape:
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return Scrape({(s.name, frozenset(s.labels.items())): s.value for s in samples})
