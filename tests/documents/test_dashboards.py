"""What the dashboard and the alerts ask Prometheus for is there, under these names and labels."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import promql_parser as promql
import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from waybill_shared.contract.routes import SERVICES
from waybill_shared.process import metrics
from waybill_shared.process.metrics_table import METRICS, CounterName, HistogramName
from waybill_shared.tools.metrics_page import render

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "metrics.md"
OPERATIONS = ROOT / "docs" / "operations.md"
DASHBOARD = json.loads((ROOT / "infra/grafana/waybill.json").read_text())
PROMETHEUS = ROOT / "infra" / "prometheus"
SCRAPING = YAML(typ="safe").load(PROMETHEUS / "prometheus.yaml")
RULES = YAML(typ="safe").load(PROMETHEUS / "alerts.yaml")["groups"][0]["rules"]
SCRAPED: Final = {"job", "instance"}  # labels that Prometheus adds
LABEL_IN_TEXT = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")
GRAFANA = {"$__rate_interval": "5m", "$pipeline": ".*"}


def series() -> dict[str, set[str]]:
    """Every name that a query may use, with its labels."""
    known: dict[str, set[str]] = {"up": set()}
    for name, metric in METRICS.items():
        labels = set(metric.labels)
        if name in get_args(HistogramName):
            known |= {f"{name}_bucket": labels | {"le"}}
            known |= {f"{name}_sum": labels, f"{name}_count": labels}
        else:
            known[name] = labels
    for family in text_string_to_metric_families(metrics.text_of("ingress", {}).decode()):
        for sample in family.samples:
            if not sample.name.startswith("waybill_"):
                known[sample.name] = set(sample.labels)
    return {name: labels | SCRAPED for name, labels in known.items()}


KNOWN = series()


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def questions() -> Iterator[tuple[str, str, str]]:
    """Where it stands, the query, and the text that names labels of its answer."""
    for panel in panels():
        for target in panel["targets"]:
            query = target["expr"]
            for variable, value in GRAFANA.items():
                query = query.replace(variable, value)
            yield panel["title"], query, target["legendFormat"]
    for rule in RULES:
        yield rule["alert"], rule["expr"], rule["annotations"]["summary"]


QUESTIONS = list(questions())


def nodes(query: str) -> list[promql.Expr]:
    found: list[promql.Expr] = []
    promql.walk(promql.parse(query), found.append, lambda node: None)
    return found


def selectors(query: str) -> list[promql.VectorSelector]:
    return [node for node in nodes(query) if isinstance(node, promql.VectorSelector)]


def grouping(query: str) -> set[str]:
    """Labels by which a query sums or joins."""
    found: set[str] = set()
    for node in nodes(query):
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            found |= set(node.modifier.labels)
        if isinstance(node, promql.BinaryExpr) and node.modifier is not None:
            found |= set(node.modifier.matching.labels) if node.modifier.matching else set()
    return found


@pytest.mark.parametrize(("place", "query", "text"), QUESTIONS, ids=[q[0] for q in QUESTIONS])
def test_a_query_uses_names_and_labels_that_there_are(place: str, query: str, text: str) -> None:
    asked = selectors(query)
    assert asked, place
    for selector in asked:
        assert selector.name in KNOWN, place
        assert {m.name for m in selector.matchers.matchers} <= KNOWN[selector.name], place

    shared_labels = set.union(*(KNOWN[selector.name or ""] for selector in asked))
    assert grouping(query) <= shared_labels, place
    assert set(LABEL_IN_TEXT.findall(text)) <= shared_labels, place


@pytest.mark.parametrize("query", [query for _, query, _ in QUESTIONS])
def test_only_counters_are_asked_for_their_rate(query: str) -> None:
    """A rate of a gauge, and a counter without a rate, both draw nonsense."""
    rates = [n for n in nodes(query) if isinstance(n, promql.Call) and _is_rate(n)]
    rated = {s.name for call in rates for s in selectors(call.prettify())}
    counters = {name for name in KNOWN if name.endswith(("_total", "_bucket", "_sum", "_count"))}
    compared = {s.name for s in selectors(query) if s.offset is not None}  # with itself, earlier

    assert rated <= counters
    assert {s.name for s in selectors(query)} & counters <= rated | compared


def _is_rate(call: promql.Call) -> bool:
    return call.func.name in {"rate", "increase"}


def test_every_metric_is_shown_on_the_dashboard() -> None:
    asked = {s.name or "" for _, query, _ in QUESTIONS for s in selectors(query)}
    bare = {re.sub("_(bucket|sum|count)$", "", name) for name in asked}

    assert set(METRICS) - bare == set()


def test_names_follow_the_conventions_of_prometheus() -> None:
    for name in METRICS:
        assert (name in get_args(CounterName)) == name.endswith("_total"), name
        assert name not in get_args(HistogramName) or name.endswith("_seconds"), name
        assert METRICS[name].says.endswith("."), name
        assert METRICS[name].worry.endswith("."), name


def test_the_page_of_metrics_is_made_of_the_table() -> None:
    same = PAGE.read_text(encoding="utf-8") == render()

    assert same, "run `.venv/bin/python -m waybill_shared.tools.metrics_page > docs/metrics.md`"


def test_every_alert_is_explained_and_each_that_is_explained_exists() -> None:
    explained = re.findall(r"^### (\w+)$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(explained) == sorted(rule["alert"] for rule in RULES)


def test_every_service_is_scraped_where_the_gateway_shows_it() -> None:
    jobs = {job["job_name"]: job["metrics_path"] for job in SCRAPING["scrape_configs"]}

    assert jobs == {service: f"/metrics/{service}" for service in SERVICES}


def test_the_dashboard_can_be_imported_as_it_is() -> None:
    assert DASHBOARD.get("id") is None
    assert [v["name"] for v in DASHBOARD["templating"]["list"]] == ["datasource", "pipeline"]
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Tokens", "Pipelines and lag", "Stages and batches", "Services"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels())
