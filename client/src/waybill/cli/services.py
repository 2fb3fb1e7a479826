"""What runs at an address: each service, whether it is ready, and its version."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import NotReady
from waybill.fields import Fields
from waybill.questions import Question

if TYPE_CHECKING:
    from waybill.sync.connection import Connection

READY = "ready"
NOT_READY = "not ready"
SILENT = "no answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedService:
    """A service and its state; `version` is None if the gateway has no answer of it."""

    name: str
    state: str
    version: str | None


def read_versions(connection: "Connection") -> dict[str, str | None]:
    """Return the version of what answers, and of each service that it knows."""
    answer = connection.ask(Question(method="GET", path="/version"))
    services = answer.object_or_none("services") or Fields({}, "no services")
    found: dict[str, str | None] = {answer.text("service"): answer.text("version")}
    for name in services.raw:
        member = services.object_or_none(name)
        found[name] = None if member is None else member.text_or_none("version")
    return found


def read_checks(connection: "Connection") -> dict[str, list[str]]:
    """Return by service what is missing there; an empty list where it is ready."""
    try:
        answer = connection.ask(Question(method="GET", path="/readyz")).raw
    except NotReady as error:
        answer = error.members
    return {name: _failures(checks) for name, checks in answer.items()}


def read_services(connection: "Connection") -> list[ListedService]:
    """Return what answers, then each service that it knows."""
    versions, checks = read_versions(connection), read_checks(connection)
    first, *others = versions
    wrong = any(checks.values())
    found = [
        ListedService(name=first, state=NOT_READY if wrong else READY, version=versions[first])
    ]
    for name in others:
        state = NOT_READY if checks.get(name) else READY
        state = SILENT if versions[name] is None else state
        found.append(ListedService(name=name, state=state, version=versions[name]))
    return found


def _failures(checks: object) -> list[str]:
    """Read the answer of a service: `ok`, or what is missing, by the name of the check."""
    if isinstance(checks, dict):
        return [f"{name}: {said}" for name, said in checks.items() if said != "ok"]
    return [] if checks == "ok" else [f"answers {checks!r}"]
