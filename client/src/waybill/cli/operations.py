"""Follows a change until it is done, and tells what became of it.

What is accepted is remembered until its end is told, so that `waybill wait PIPELINE` takes no phase
from before the change for its success.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from waybill.cli import accepted, render
from waybill.cli.accepted import Accepted
from waybill.cli.check import tell_findings
from waybill.cli.exits import ExitCode
from waybill.cli.maintain import print_maintenance
from waybill.cli.phase_view import showing_phase
from waybill.cli.render import Form
from waybill.cli.session import connect
from waybill.errors import NotFound, WaybillError
from waybill.findings import found_in
from waybill.models import Fault, Operation
from waybill.sync.clock import SystemTimer
from waybill.waiting import Patience

if TYPE_CHECKING:
    from waybill.sync.client import Client

CHECK, MAINTAIN = "validate", "maintain"  # as operations call them
ANSWERS_KEPT_S = 3600.0  # by Waybill; what it has forgotten it tells as pending


def finish(
    client: "Client",
    taken: Operation,
    timeout: float,
    output: Form,
    file: str | None = None,
    *,
    must_end: bool,
) -> None:
    """Wait until the change is done, and tell it; one that is only accepted may end with 0.

    It is remembered before it is waited for: another shell may ask, and this one may be killed.
    What cannot be remembered must be done in time, because nothing else could wait for it.
    """
    change = _as_accepted(client, taken)
    lapse = _lapse(change) if taken.pending else None
    operation = _settle(client, taken, timeout, output)
    if operation.pending and lapse is not None:
        render.complain(f"warning: {lapse}")
    if not operation.pending:
        with _only_warned():
            _close(change, operation)
    _tell(operation, timeout, output, file, must_end=must_end or lapse is not None)


def follow(id: str, timeout: float, output: Form) -> None:
    """What was asked for earlier, until it is done; ends as the command that asked for it."""
    pipeline = id.split(".")[1]
    with connect() as client, showing_phase(pipeline, f"waiting for {id}", output):
        operation = client.operation(id, wait_s=timeout)
    if operation.action == CHECK and not operation.pending:
        tell_findings(found_in(operation), pipeline, output)
        return
    if operation.action == MAINTAIN:
        print_maintenance(operation, output)
        return
    if not operation.pending:
        with _only_warned():
            for change in accepted.remembered(client.url, pipeline, os.environ):
                if change.operation == id:
                    _close(change, operation)
    _tell(operation, timeout, output)


def follow_accepted(client: "Client", pipeline: str, timeout: float, output: Form) -> float:
    """First of all, what this user's commands were only told as accepted; the seconds left then.

    The newest comes first: where it is done, what it replaces is of no account. A refusal, and a
    change that is not done in time, end as they do with `waybill wait OPERATION`; only the second
    is still remembered then.

    After an hour Waybill tells a change that it has forgotten as one that is pending. From then on
    neither word is proof: it ends with 5, not as done and not as refused, and is forgotten. Like a
    refusal it is told once; what asks next asks for the phase alone.
    """
    patience = Patience(SystemTimer(), timeout)
    while changes := accepted.remembered(client.url, pipeline, os.environ):
        change = changes[-1]
        operation = _asked_again(client, change, patience.left_s, output)
        if operation is None or (operation.pending and _too_old(change)):
            accepted.forget(change, os.environ)
            _end_unknown(change)
        if operation.pending:
            _tell(operation, timeout, output)
        _close(change, operation)
        if operation.failed:
            _tell(operation, timeout, output)
        _tell_warnings(operation)
    return patience.left_s


def _asked_again(
    client: "Client", change: Accepted, left_s: float, output: Form
) -> Operation | None:
    """None: Waybill says that there was no such operation."""
    wait_s = 0.0 if _too_old(change) else left_s
    with showing_phase(change.pipeline, f"waiting for {change.operation}", output):
        try:
            return client.operation(change.operation, wait_s=wait_s)
        except NotFound:
            return None


def _as_accepted(client: "Client", taken: Operation) -> Accepted:
    return Accepted(
        url=client.url,
        pipeline=taken.pipeline,
        operation=taken.id,
        action=taken.action,
        at=_now(),
    )


def _lapse(change: Accepted) -> WaybillError | None:
    """Why it cannot be remembered."""
    try:
        accepted.remember(change, os.environ)
    except WaybillError as error:
        return error
    return None


def _settle(client: "Client", operation: Operation, timeout: float, output: Form) -> Operation:
    if not operation.pending:
        return operation
    doing = f"{operation.action} {operation.pipeline}"
    with showing_phase(operation.pipeline, doing, output):
        return client.operation(operation.id, wait_s=timeout)


def _close(change: Accepted, operation: Operation) -> None:
    """Forget what has ended, and what came before it if it replaces that."""
    accepted.forget(change, os.environ)
    if operation.failed:
        return
    for older in accepted.remembered(change.url, change.pipeline, os.environ):
        if older.at <= change.at and older.replaced_by(change.action):
            accepted.forget(older, os.environ)


@contextmanager
def _only_warned() -> Iterator[None]:
    """A change is done or refused, whatever the memory of it does."""
    try:
        yield
    except WaybillError as error:
        render.complain(f"warning: {error}")


def _too_old(change: Accepted) -> bool:
    return _now() - change.at > ANSWERS_KEPT_S


def _now() -> float:
    return time.time()  # noqa: TID251 - the client has nothing of the services


def _tell(
    operation: Operation,
    timeout: float,
    output: Form,
    file: str | None = None,
    *,
    must_end: bool = True,
) -> None:
    _tell_operation(operation, file or operation.pipeline, output)
    _tell_pending(operation, timeout, output, must_end=must_end)


def _tell_operation(operation: Operation, file: str, output: Form) -> None:
    if output is Form.JSON:
        render.as_json(operation.raw)
    _tell_warnings(operation)
    tell_faults(operation.errors, file)
    if operation.failed:
        render.complain(
            render.words("error:", f"{operation.action} {operation.pipeline}", "failed")
        )
        raise typer.Exit(ExitCode.ERROR)
    if output is Form.TABLE and not operation.pending:
        told = [operation.pipeline, operation.action, operation.state]
        if operation.generation is not None:
            told.append(f"generation {operation.generation}")
        render.data([render.words(*told)])


def _tell_pending(operation: Operation, timeout: float, output: Form, *, must_end: bool) -> None:
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
        told = f"is accepted, but not done after {timeout:g} s: {follows} follows it"
        render.data([f"{asked} {told}"])


def _end_unknown(change: Accepted) -> NoReturn:
    asked = f"{change.action} {change.pipeline}"
    render.complain(
        render.words("error:", f"what became of {asked} is not known any more"),
        f"Waybill keeps the answer to a change for an hour; this was {change.operation}",
        render.words("hint:", f"`waybill describe {change.pipeline}` says what is there now"),
    )
    raise typer.Exit(ExitCode.UNKNOWN)


def _tell_warnings(operation: Operation) -> None:
    for warning in operation.warnings:
        render.complain(f"warning: {warning}")


def tell_faults(faults: tuple[Fault, ...], file: str) -> None:
    render.complain(*(render.fault_text(fault, file) for fault in faults))
