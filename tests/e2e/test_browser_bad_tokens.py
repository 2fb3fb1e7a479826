"""Tokens in a real browser that say no more, say too much, or are none: each is said in words.

The stack is real, and so is what is shown, but for what a test says of itself.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest
from playwright.sync_api import Page, Route, expect

from browsing import WAIT_MS, needs_browser
from e2e.shown import WAIT_S, Small, named
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.access.key_ring import load_key_ring
from waybill_shared.contract.sealing import KEY_BYTES, NONCE_BYTES, KeyRing
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.tokens import Token, open_token, seal
from waybill_shared.process.clock import SystemClock

pytestmark = needs_browser


@pytest.fixture(scope="module")
def running(client: Client) -> Iterator[Small]:
    made = named(client, "bad")
    made.apply()
    yield made
    client.delete(made.name)


@pytest.fixture
def stopped(client: Client) -> Small:
    """Its records wait for ever."""
    made = named(client, "held")
    made.apply("stopped")
    return made


def test_a_token_of_a_pipeline_that_is_deleted_says_which_records_are_lost(
    page: Page, stopped: Small
) -> None:
    stopped.send(4)
    token = stopped.send(3)
    page.goto(f"/t/{token}")
    expect(page.locator(".outcome")).to_have_text("in progress")
    stopped.delete()
    expect(page.locator(".outcome")).to_have_text("lost", timeout=WAIT_MS)
    expect(page.locator(".lead")).to_contain_text("Some of it will never be processed.")
    (lost,) = stopped.client.outcome(token).lost
    assert lost.start is not None
    assert lost.end == lost.start + 3
    places = f"{stopped.name}.in[0] offsets {lost.start} to {lost.end - 1}"
    said = f"{places}: the pipeline was deleted before they arrived"
    expect(page.get_by_role("listitem").filter(has_text="offsets")).to_have_text(said)
    page.reload()
    expect(page.get_by_text(said)).to_be_visible()


def test_a_merged_token_shows_its_parts(page: Page, running: Small, stopped: Small) -> None:
    tokens = [running.send(2), stopped.send(3)]
    running.client.wait(tokens[0], timeout_s=WAIT_S)
    page.goto(f"/t/{running.client.merge(tokens)}")
    expect(page.locator(".outcome")).to_have_text("in progress")
    expect(page.locator(".lead")).to_contain_text("5 records accepted")
    part = {each: page.get_by_label(f"pipeline {each.name}") for each in (running, stopped)}
    expect(page.locator("h2.part")).to_have_count(2)
    expect(part[running]).to_have_attribute("data-tone", "good")
    expect(part[running].locator(".row.sink .said")).to_contain_text("visible")
    expect(part[stopped]).to_have_attribute("data-tone", "busy")
    expect(part[stopped].locator(".row.sink .said")).to_contain_text("3 records still to come")
    stopped.delete()
    expect(page.locator(".outcome")).to_have_text("lost", timeout=WAIT_MS)
    expect(part[stopped]).to_have_attribute("data-tone", "bad")
    expect(part[stopped]).to_contain_text("the pipeline was deleted")
    expect(part[running]).to_have_attribute("data-tone", "good")
    expect(part[running]).not_to_contain_text("Lost")


def of_another_installation(token: str, ours: KeyRing) -> str:
    """As genuine as ours, but sealed with the keys of somebody else."""
    now = SystemClock().now_ms()
    opened = open_token(token, ours, tenant=DEFAULT_TENANT, now_ms=now)
    theirs = KeyRing(active=ours.active, keys={ours.active: secrets.token_bytes(KEY_BYTES)})
    return sealed(opened, theirs)


def of_last_month(token: str, ours: KeyRing) -> str:
    """It was issued a minute too long ago."""
    now = SystemClock().now_ms()
    opened = open_token(token, ours, tenant=DEFAULT_TENANT, now_ms=now)
    return sealed(replace(opened, issued_at=now - TOKEN_LIFE_MS - 60_000), ours)


def cut_short(token: str, ours: KeyRing) -> str:
    return token[:30]


def cut_by_a_screen(token: str, ours: KeyRing) -> str:
    """As a program writes it that has no room."""
    return f"{token[:30]}…"


def sealed(token: Token, ring: KeyRing) -> str:
    return seal(token, ring, tenant=DEFAULT_TENANT, nonce=secrets.token_bytes(NONCE_BYTES))


UNKNOWN: Final = ("no such token", "it may be cut short or of another one")
EXPIRED: Final = ("the token is older than 30 days", "a new token for the pipeline's input")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (of_another_installation, UNKNOWN),
        (cut_short, UNKNOWN),
        (cut_by_a_screen, UNKNOWN),
        (of_last_month, EXPIRED),
    ],
)
def test_a_token_that_says_nothing_says_why(
    page: Page,
    stack: StackState,
    running: Small,
    spoil: Callable[[str, KeyRing], str],
    words: tuple[str, str],
) -> None:
    token = spoil(running.send(), load_key_ring(stack.folder / "keys.json"))
    page.goto("/")
    page.keyboard.press("/")
    jump = page.get_by_label("Go to a pipeline or token")
    jump.fill(token)
    jump.press("Enter")
    page.wait_for_url(re.compile("/t/"))
    for said in words:
        expect(page.locator(".trouble")).to_contain_text(said)
    expect(page.locator(".outcome")).to_have_text("not to be followed")
    expect(page.locator(".token")).to_have_attribute("data-tone", "doubt")
    expect(page.locator("#banner")).to_be_hidden()


def test_what_is_complete_for_long_is_said_without_its_batch(page: Page, running: Small) -> None:
    """Waybill forgets a batch after 10,000 more, which take too long: a real answer is changed."""
    token = running.send()
    running.client.wait(token, timeout_s=WAIT_S)
    outcome = page.request.get(f"/v1/tokens/{token}").json()
    stage = outcome["stages"][0]
    stage |= {"batch": None, "committed_at": None}
    stage["sinks"][0] |= {"batch_rows": None, "read_at": None, "committed_at": None}
    stage["sinks"][0] |= {"version": None, "detail": "expired"}
    told = f"event: outcome\ndata: {json.dumps(outcome | {'completed_at': None})}\n\n"

    def forget(route: Route) -> None:
        route.fulfill(content_type="text/event-stream", body=told)

    page.route("**/v1/tokens/*", forget)
    page.goto(f"/t/{token}")
    expect(page.locator(".outcome")).to_have_text("complete")
    said = "it is committed, by a batch too old for its details to be kept"
    expect(page.locator(".row.sink .said")).to_have_text(said)
    expect(page.locator(".lead")).to_contain_text("All of it is committed in every sink")
