"""Follows a change until it is done, and prints what became of it.

The functions are called in this order. `finish` runs in the command that makes the change. It
remembers the change, waits for its end, prints it, and forgets the change. If the time is over
first, the change stays remembered, and the command may report it as accepted. Later, `waybill wait
PIPELINE` calls `follow_accepted`, which waits for the remembered changes before it looks at the
phase. So a phase from before the change is never its success. `waybill wait OPERATION` calls
`follow`, also for a change of another user.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import typer

from waybill.cli import accepted, render
from waybill.cli.accepted import Accepted
from waybill.cli.check import print_findings
from waybill.cli.exits import ExitCode
from waybill.cli.faults import print_faults
from waybill.cli.maintain import print_maintenance
from waybill.cli.phase_view import show_phase
from waybill.cli.render import Form
from waybill.cli.session import connect
from waybill.errors import NotFound, WaybillError
from waybill.findings import findings_in
from waybill.models import Operation
from waybill.sync.clock import SystemTimer
from waybill.waiting import Patience

if TYPE_CHECKING:
    from waybill.sync.client import Client

CHECK, MAINTAIN = "validate", "maintain"  # as operations call them
ANSWERS_KEPT_S = 3600.0  # by Waybill; it answers pending for what it has forgotten


def finish(
    client: "Client",
    sent: Operation,
    timeout: float,
    output: Form,
    file: str | None = None,
    *,
    must_end: bool,
    command: str | None = None,
) -> None:
    """Wait until the change is done, and print it; one that is only accepted may end with 0.
    `command`: the name of what was asked, if it is not that of the operation.

    It is remembered before the wait: another shell may ask for it, and this one may be killed. A
    change that cannot be remembered must be done in time, because nothing else could wait for it.
    """
    change = _as_accepted(client, sent)
    lapse = _lapse(change) if sent.pending else None
    operation = _settle(client, sent, timeout, output)
    if operation.pending and lapse is not None:
        render.complain(f"warning: {lapse}")
    if not operation.pending:
        with _only_warned():
            _close(change, operation)
    asked = operation if command is None else replace(operation, action=command)
    _print(asked, timeout, output, file, must_end=must_end or lapse is not None)


def follow(id: str, timeout: float, output: Form) -> None:
    """Wait until an earlier operation is done, and end as the command that asked for it."""
    pipeline = id.split(".")[1]
    with connect() as client, show_phase(pipeline, f"waiting for {id}", output):
        operation = client.operation(id, wait_s=timeout)
    if operation.action == CHECK and not operation.pending:
        print_findings(findings_in(operation), pipeline, output)
        return
    if operation.action == MAINTAIN:
        print_maintenance(operation, output)
        return
    if not operation.pending:
        with _only_warned():
            for change in accepted.stored_changes(client.url, pipeline, os.environ):
                if change.operation == id:
                    _close(change, operation)
    _print(operation, timeout, output)


def follow_accepted(client: "Client", pipeline: str, timeout: float, output: Form) -> float:
    """Wait for changes that were only reported as accepted, and return the seconds that are left.

    These are changes by commands of this user. The newest comes first: once it is done, the changes
    that it replaces do not matter. A refusal, and a change that is not done in time, end as they do
    with `waybill wait OPERATION`; only the second is still remembered then.

    After an hour Waybill forgets a change, and answers that it is pending. From then on no answer
    is proof. The command ends with 5, neither as done nor as refused, and forgets the change. Like
    a refusal, this is printed once; the next command asks for the phase alone.
    """
    patience = Patience(SystemTimer(), timeout)
    while changes := accepted.stored_changes(client.url, pipeline, os.environ):
        change = changes[-1]
        operation = _ask_again(client, change, patience.left_s, output)
        if operation is None or (operation.pending and _too_old(change)):
            accepted.forget(change, os.environ)
            _end_unknown(change)
        if operation.pending:
            _print(operation, timeout, output)
        _close(change, operation)
        if operation.failed:
            _print(operation, timeout, output)
        _print_warnings(operation)
    return patience.left_s


def _ask_again(client: "Client", change: Accepted, left_s: float, output: Form) -> Operation | None:
    """Ask for the change again; return None if Waybill says that there was no such operation."""
    wait_s = 0.0 if _too_old(change) else left_s
    with show_phase(change.pipeline, f"waiting for {change.operation}", output):
        try:
            return client.operation(change.operation, wait_s=wait_s)
        except NotFound:
            return None


def _as_accepted(client: "Client", sent: Operation) -> Accepted:
    return Accepted(
        url=client.url,
        pipeline=sent.pipeline,
        operation=sent.id,
        action=sent.action,
        at=_now(),
    )


def _lapse(change: Accepted) -> WaybillError | None:
    """Remember the change; return the error if that is not possible."""
    try:
        accepted.remember(change, os.environ)
    except WaybillError as error:
        return error
    return None


def _settle(client: "Client", operation: Operation, timeout: float, output: Form) -> Operation:
    if not operation.pending:
        return operation
    doing = f"{operation.action} {operation.pipeline}"
    with show_phase(operation.pipeline, doing, output):
        return client.operation(operation.id, wait_s=timeout)


def _close(change: Accepted, operation: Operation) -> None:
    """Forget a change that has ended and, if it is done, the earlier ones that it replaces."""
    accepted.forget(change, os.environ)
    if operation.failed:
        return
    for older in accepted.stored_changes(change.url, change.pipeline, os.environ):
        if older.at <= change.at and older.is_replaced_by(change.action):
            accepted.forget(older, os.environ)


@contextmanager
def _only_warned() -> Iterator[None]:
    """Print an error of the remembered changes as a warning: the change itself is done or
    refused."""
    try:
        yield
    except WaybillError as error:
        render.complain(f"warning: {error}")


def _too_old(change: Accepted) -> bool:
    return _now() - change.at > ANSWERS_KEPT_S


def _now() -> float:
    return time.time()  # noqa: TID251 - the client has nothing of the services


def _print(
    operation: Operation,
    timeout: float,
    output: Form,
    file: str | None = None,
    *,
    must_end: bool = True,
) -> None:
    _print_operation(operation, file or operation.pipeline, output)
    _print_pending(operation, timeout, output, must_end=must_end)


def _print_operation(operation: Operation, file: str, output: Form) -> None:
    if output is Form.JSON:
        render.as_json(operation.raw)
    _print_warnings(operation)
    print_faults(operation.errors, file)
    if operation.failed:
        render.complain(
            render.words("error:", f"{operation.action} {operation.pipeline}", "failed")
        )
        raise typer.Exit(ExitCode.ERROR)
    if output is Form.TABLE and not operation.pending:
        words = [operation.pipeline, operation.action, operation.state]
        if operation.generation is not None:
            words.append(f"generation {operation.generation}")
        render.data([render.words(*words)])


def _print_pending(operation: Operation, timeout: float, output: Form, *, must_end: bool) -> None:
    if not operation.pending:
        return
    asked, follows = f"{operation.action} {operation.pipeline}", f"`waybill wait {operation.id}`"
    if must_end:
        render.complain(
            f"{asked} is not done after {timeout:g} s: it goes on, and {follows} follows it",
            f"hint: `waybill describe {operation.pipeline}` says what it waits for",
        )
        raise typer.Exit(ExitCode.IN_PROGRESS)
    if output is Form.TABLE:
        words = f"is accepted, but not done after {timeout:g} s: {follows} follows it"
        render.data([f"{asked} {words}"])


def _end_unknown(change: Accepted) -> NoReturn:
    asked = f"{change.action} {change.pipeline}"
    render.complain(
        render.words("error:", f"what became of {asked} is not known any more"),
        f"Waybill keeps the answer to a change for an hour; this was {change.operation}",
        render.words("hint:", f"`waybill describe {change.pipeline}` says what is there now"),
    )
    raise typer.Exit(ExitCode.UNKNOWN)


def _print_warnings(operation: Operation) -> None:
    for warning in operation.warnings:
        render.complain(f"warning: {warning}")
