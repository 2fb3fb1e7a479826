"""Stops the pipelines that tests leave on the shared stack: each has a driver until its end."""

from collections.abc import Collection
from contextlib import suppress
from functools import partial

from e2e.waiting import eventually
from waybill import Client, NotFound, NotReady, Unreachable

ANSWER_TIMEOUT_S = 120.0  # a test may have killed the services just now
STOP_S = 10.0  # until then its driver is free, and the next test starts none


def wanted_running(client: Client) -> set[str]:
    """Names of the pipelines that are to run, whatever they do at this moment."""
    found: set[str] = set()

    def asked() -> bool:
        with suppress(NotReady, Unreachable):
            found.update(each.name for each in client.pipelines() if each.desired == "running")
            return True
        return False

    eventually(asked, within_s=ANSWER_TIMEOUT_S)
    return found


def stop_others(client: Client, lasting: Collection[str]) -> None:
    """Stop all that run, but for those in `lasting`: the next test gets their drivers, warm."""
    for name in wanted_running(client) - set(lasting):
        eventually(partial(_told_to_stop, client, name), within_s=ANSWER_TIMEOUT_S)


def _told_to_stop(client: Client, name: str) -> bool:
    try:
        client.stop(name, wait_s=STOP_S)
    except NotFound:
        return True  # deleted meanwhile
    except (NotReady, Unreachable):
        return False
    return True
