"""The command `demo`: the path of one record on this machine, shown step by step.

It uses what every user has: the stack's commands, the SDK, a Kafka producer, an Iceberg reader.
"""

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from waybill.cli import render
from waybill.cli.arrival import outcome_lines
from waybill.cli.exits import ExitCode
from waybill.cli.faults import print_faults
from waybill.cli.progress import progress_rows
from waybill.cli.reports import Reports
from waybill.cli.stack import local_stack
from waybill.errors import StillInProgress, WaybillError
from waybill.models import Position
from waybill.outcomes import Outcome

if TYPE_CHECKING:
    from waybill.sync.client import Client
    from waybill_local.state import StackState

PIPELINE = "orders"
INPUT = "orders"
TOPIC = "orders.in"
TABLE = "raw.orders"
MANIFEST = "orders.yaml"
READY_TIMEOUT_S = 120.0
SETTINGS = {
    "WAYBILL_STAGE_RUNNER_SPARE_DRIVERS": "0",  # one pipeline needs one driver
    "WAYBILL_STAGE_RUNNER_CHECK_TIMEOUT_S": "120",  # the first one on a busy machine takes long
}
ARRIVAL_TIMEOUT_S = 180.0  # a machine with other work is slow, not broken
DELIVERY_TIMEOUT_S = 10.0
CUSTOMERS = ("Ada", "Grace", "Katherine")
TRY_NEXT = (
    ("up --detach", "start the stack again, to keep it running"),
    ("start orders", "start the pipeline, which the demo has stopped"),
    ('send orders orders \'{"order_id": 1, "amount": 12.5}\' --wait 60', ""),
    ("describe orders", "its stages, sinks and last batches"),
    ("--help", "all commands"),
)


def demo() -> None:
    """Show the whole story: start a stack, send records, follow their token, read them back.

    Applies examples/orders.yaml: orders come in over Kafka, one Spark stage adds the tax, a second
    loads them into an Iceberg table. Uses the stack of this folder if it runs, else starts one in
    ./.waybill and stops it at the end. Takes about half a minute once everything is downloaded.

    \b
    Example:
      waybill demo

    Exit codes: 0 everything arrived · 1 error · 130 Ctrl-C
    """
    story = Story()
    with local_stack(), _ends_in_a_sentence(), _stack(story) as (state, own):
        from waybill.sync.client import Client

        with Client(state.url) as client, _stop_at_the_end(client, own=own):
            with story.step("apply", f"examples/{MANIFEST}: Kafka, Spark, Kafka, Spark, Iceberg"):
                _apply(client)
            _over_http(client, state, story)
            _straight_to_kafka(client, state, story)
    show_what_next(own=own)
    story.print_times()


@contextmanager
def _ends_in_a_sentence() -> Iterator[None]:
    """Print what is left, and what to do, if the user interrupts the demo."""
    try:
        yield
    except KeyboardInterrupt:
        render.complain("interrupted: what the demo started is stopped; run it again")
        raise


@contextmanager
def _stop_at_the_end(client: "Client", *, own: bool) -> Iterator[None]:
    """Stop the pipeline, however the demo ends.

    Else the next `up` would start it again, and nobody asked for it. If the demo uses another
    stack, the pipeline continues.
    """
    try:
        yield
    finally:
        if own:
            with suppress(WaybillError):  # it was not applied yet
                client.stop(PIPELINE)


def show_what_next(*, own: bool) -> None:
    """Print commands that work in the shell of the reader, also where the environment of `waybill`
    is not active there."""
    program = Path(sys.argv[0])
    command = "waybill" if shutil.which("waybill") else _short(program.absolute())
    lines = [(f"{command} {what}", why) for what, why in TRY_NEXT if own or "start" not in why]
    render.data(["", "  try next", *(f"    {what:<36}  {why}".rstrip() for what, why in lines), ""])


def _short(program: Path) -> str:
    """Return the path from here, if it is below this folder."""
    here = Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)


class Story:
    """The steps of the demo: a line for each that is done, and how long each took."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._took: list[tuple[str, float]] = []

    @contextmanager
    def step(self, name: str, text: str, *, quiet: bool = False) -> Iterator[None]:
        """Run a step and print its line; with `quiet` the step itself shows that it is running."""
        began = time.monotonic()
        with nullcontext() if quiet else render.busy(f"{name}: {text}"):
            yield
        took = time.monotonic() - began
        self._took.append((name, took))
        render.data([f"  {name:<14} {text}  {took:.1f} s"])

    def print_times(self) -> None:
        total = time.monotonic() - self._began
        parts = ", ".join(f"{name} {took:.1f}" for name, took in self._took)
        render.data([f"{total:.1f} s in all: {parts}"])


@contextmanager
def _stack(story: Story) -> Iterator[tuple["StackState", bool]]:
    """Use the stack of this folder, or start one and stop it at the end; the second value is True
    if it was started here."""
    from waybill_local.stack import AlreadyRunning, down, read_state, up

    folder = Path.cwd()
    running = read_state(folder)
    if running is not None:
        render.data([f"the stack in {running.folder} runs already; it is used and left running"])
        yield running, False
        return
    render.data([f"one record's way, on a stack of its own in {folder / '.waybill'}"])
    with Reports("starting") as reports, story.step("stack", "Kafka, Valkey, services, gateway"):
        try:
            state = up(folder, reports.show, tied=True, environment={**os.environ, **SETTINGS})
        except AlreadyRunning as found:
            raise WaybillError(
                "another stack of this folder is just starting: try again in a minute, or in"
                " another folder"
            ) from found
        reports.settle()
    try:
        yield state, True
    finally:
        with story.step("stop", "everything; what it stored is kept in .waybill"):
            down(folder, lambda report: None)


def _apply(client: "Client") -> None:
    manifest = (files("waybill") / "examples" / MANIFEST).read_text(encoding="utf-8")
    operation = client.apply(manifest)
    if operation.pending:
        operation = client.operation(operation.id, wait_s=READY_TIMEOUT_S)
    if operation.state == "failed":
        print_faults(operation.errors, MANIFEST)
        raise typer.Exit(ExitCode.ERROR)
    client.wait_pipeline(PIPELINE, timeout_s=READY_TIMEOUT_S)


def _over_http(client: "Client", state: "StackState", story: Story) -> None:
    orders = [_order(customer) for customer in CUSTOMERS]
    with story.step("send", f"{len(orders)} orders over HTTP"):
        receipt = client.send(PIPELINE, INPUT, orders)
    render.data([f"  {'':<14} the token: {receipt.token}"])
    outcome = _follow(client, receipt.token, story)
    numbers = [int(str(order["order_id"])) for order in orders]
    _read_back(state, outcome, numbers, story)


def _straight_to_kafka(client: "Client", state: "StackState", story: Story) -> None:
    order = _order("Margaret")
    with story.step("kafka", f"one order straight to topic {TOPIC}, by a plain producer"):
        position = _produce(state.kafka, order)
    with story.step("token for", f"{TOPIC}[{position.partition}]@{position.offset}"):
        token = client.token_for(PIPELINE, positions=[position]).token
    outcome = _follow(client, token, story)
    _read_back(state, outcome, [int(str(order["order_id"]))], story)


def _follow(client: "Client", token: str, story: Story) -> Outcome:
    """Return the final outcome; print every change on the way with its time."""
    shown: set[tuple[str, ...]] = set()
    began = time.monotonic()
    try:
        with story.step("follow", "the token, through both stages", quiet=True):
            for outcome in client.follow(token, ARRIVAL_TIMEOUT_S):
                rows = [row for row in progress_rows(outcome) if row not in shown]
                shown.update(rows)
                at = f"{time.monotonic() - began:.1f} s"
                table = render.table([(at, *row) for row in rows])
                render.data(render.words(f"{'':<16}", str(line)) for line in table)
    except StillInProgress as error:
        pipeline = client.pipeline(PIPELINE)
        why = pipeline.error.message if pipeline.error is not None else str(error)
        state = f"pipeline {PIPELINE} is {pipeline.phase} after {ARRIVAL_TIMEOUT_S:.0f} s"
        raise WaybillError(f"{state}: {why}") from error
    summary = outcome_lines(outcome)[0]
    render.data([render.words(f"{'':<16}", str(summary))])
    if outcome.kind != "complete":
        raise WaybillError(f"the records ended as {outcome.kind}, expected complete")
    return outcome


def _read_back(state: "StackState", outcome: Outcome, numbers: list[int], story: Story) -> None:
    """Read and print the rows of exactly the snapshot that the token named."""
    from pyiceberg.catalog.sql import SqlCatalog

    snapshot_id = next(iter(outcome.iceberg_snapshots.values()))
    with story.step("read", f"table {TABLE} at snapshot {snapshot_id}, with PyIceberg"):
        catalog = SqlCatalog("lakehouse", uri=f"sqlite:///{state.folder}/lakehouse/catalog.db")
        table = catalog.load_table(TABLE)
        scan = table.scan(
            row_filter=f"order_id in ({', '.join(map(str, numbers))})", snapshot_id=snapshot_id
        )
        rows = scan.to_arrow().to_pylist()
    if sorted(row["order_id"] for row in rows) != sorted(numbers):
        raise WaybillError(f"snapshot {snapshot_id} holds {rows}, expected orders {numbers}")
    cells = [tuple(str(value) for value in row.values()) for row in rows]
    for line in render.table(cells, header=tuple(rows[0])):
        render.data([render.words(f"{'':<16}", str(line))])


def _produce(bootstrap: str, order: dict[str, object]) -> Position:
    """Produce the order as any producer does; return its position, from the delivery report."""
    from waybill_shared.kafka.admin import make_admin
    from waybill_shared.kafka.clients import make_producer, position_of, produce_and_wait

    topic = make_admin(bootstrap).identify([TOPIC])[TOPIC]
    value = json.dumps(order).encode()
    producer = make_producer(bootstrap)
    report = produce_and_wait(
        producer, TOPIC, str(order["order_id"]), value, timeout_s=DELIVERY_TIMEOUT_S
    )
    partition, offset = position_of(report)
    return Position(topic=TOPIC, topic_id=topic.topic_id, partition=partition, offset=offset)


def _order(customer: str) -> dict[str, object]:
    return {
        "order_id": secrets.randbelow(10**9),
        "customer": customer,
        "amount": 1 + secrets.randbelow(10_000) / 100,
        "placed_at": "2026-11-21T09:00:00Z",
    }
