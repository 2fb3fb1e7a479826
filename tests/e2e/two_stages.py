"""A pipeline of two stages, shown in a browser."""

from playwright.sync_api import Page

from e2e.shown import WAIT_S, Shown

HOSTILE = '<img src=x onerror="window.hurt=1">'
MANIFEST = """\
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT NOT NULL, customer STRING, amount INT"
    expectations: [{{name: enough, expect: "amount >= {least}"}}]
stages:
  - name: first
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: inner, kafka: {{topic: {name}.inner, partitions: 1}}}}]
  - name: second
    inputs: [inner]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: doubled, sql: "SELECT *, amount * 2 AS twice FROM inner"}}]
    sinks: [{{name: lake, iceberg: {{table: raw.{table}}}}}]
"""


class TwoStages(Shown):
    def manifest(self, least: int = 10) -> str:
        table = self.name.replace("-", "_")
        return MANIFEST.format(name=self.name, table=table, least=least)

    def apply(self, least: int = 10) -> None:
        self.apply_text(self.manifest(least))
        self.client.wait_pipeline(self.name, timeout_s=WAIT_S)

    def send(self, amount: int, customer: str = "ada") -> str:
        record = {"order_id": 1, "customer": customer, "amount": amount}
        return str(self.client.send(self.name, "orders", [record]).token)


def row_of(page: Page, name: str) -> str:
    return f"tbody tr:has(a[href='/p/{name}'])"
