"""`make console-pictures`: makes docs/pictures anew, from the console of a stack of its own."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, expect

from browsing import WAIT_MS, browsing
from e2e.conftest import order, orders_manifest
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options
from waybill_shared.kafka.clients import make_producer, produce_and_wait

WAIT_S: Final = 120.0
SIZES: Final = {"wide": (1280, 800), "narrow": (390, 800)}
SCHEMES: Final = ("light", "dark")
SECOND_MS: Final = 2_500  # two looks of the page, so that there is a rate
WRONG: Final = "SELECT *, amount * 0.2 AS tax FROM ordrs"
RIGHT: Final = "SELECT *, amount * 0.2 AS tax FROM orders"


class Subject:
    """What is looked at: the example, with a thousand orders and two records that died."""

    def __init__(self, client: Client, kafka: str) -> None:
        self.client = client
        self.manifest, self.pipeline = orders_manifest()
        done = client.operation(client.apply(self.manifest).id, wait_s=WAIT_S)
        assert done.state == "done", done.errors
        self.complete = client.send(self.name, "orders", map(order, range(3))).token
        client.wait(self.complete, timeout_s=WAIT_S)
        for number in range(20):
            records = [order(each) for each in range(number * 50, number * 50 + 50)]
            client.wait(client.send(self.name, "orders", records).token, timeout_s=WAIT_S)
        dead = [json.dumps({**order(7), "amount": text}) for text in ("twelve", "<b>12</b>")]
        producer = make_producer(kafka)
        for each in dead:
            produce_and_wait(producer, self.pipeline.topic, "7", each.encode())

    @property
    def name(self) -> str:
        return self.pipeline.name


def take(browser: Browser, url: str, subject: Subject, folder: Path) -> None:
    views = {
        "pipelines": "/",
        "pipeline": f"/p/{subject.name}?stage=load",
        "token": f"/t/{subject.complete}",
        "dead-letters": f"/p/{subject.name}/dead-letters",
        "apply": f"/apply?pipeline={subject.name}",
    }
    for size, (width, height) in SIZES.items():
        for scheme in SCHEMES:
            context = browser.new_context(
                base_url=url,
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                reduced_motion="reduce",
            )
            page = context.new_page()
            for view, path in views.items():
                page.goto(path)
                expect(page.locator("h1")).to_be_visible()
                if view == "apply":
                    editor = page.get_by_label("Manifest")
                    expect(editor).not_to_be_empty()
                    editor.fill(subject.manifest.replace(RIGHT, WRONG))
                    expect(page.locator(".errors li")).to_have_count(1, timeout=WAIT_MS)
                page.wait_for_timeout(SECOND_MS)
                page.screenshot(path=folder / f"console-{view}-{size}-{scheme}.png")
            context.close()


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        state = stack.up(Path(home), lambda report: None, options=_any_ports(), tied=True)
        try:
            with Client(state.url) as client, browsing() as browser:
                take(browser, state.url, Subject(client, state.kafka), folder)
        finally:
            stack.down(Path(home), lambda report: None)


def _any_ports() -> Options:
    return Options(gateway_port=0, kafka_port=0, valkey_port=0)


if __name__ == "__main__":
    main()
