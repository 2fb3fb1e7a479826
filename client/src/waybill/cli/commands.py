"""The commands of `waybill`, in the order in which a new user meets them.

Each is imported only when it is used, which makes all others start sooner.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

import typer
import typer.main

if TYPE_CHECKING:
    from typer._click import Command  # it has no public name

PLACES: Final = {
    "demo": "demo:demo",
    "up": "stack:up",
    "down": "stack:down",
    "ps": "stack:ps",
    "env": "stack:env",
    "init": "init:init",
    "convert": "convert:convert",
    "apply": "changes:apply",
    "check": "check:check",
    "diff": "diff:diff",
    "rollback": "changes:rollback",
    "wait": "pipelines:wait",
    "list": "pipelines:list_all",
    "get": "pipelines:get",
    "describe": "pipelines:describe",
    "offsets": "offsets:offsets",
    "events": "events:events",
    "history": "history:history",
    "start": "changes:start",
    "stop": "changes:stop",
    "pause": "pausing:pause",
    "resume": "pausing:resume",
    "restart": "restarting:restart",
    "rescale": "rescaling:rescale",
    "rename": "renaming:rename",
    "delete": "changes:delete",
    "topic": "growing:topic",
    "maintain": "maintain:maintain",
    "send": "send:send",
    "watch": "watches:watch",
    "watches": "watches:watches",
    "unwatch": "watches:unwatch",
    "redeliver": "watches:redeliver",
    "doctor": "doctor:doctor",
    "logs": "logs:logs",
    "completion": "completion:completion",
    "open": "console:open_console",
    "version": "versions:version",
    "token": "tokens:tokens",
    "dlq": "dlq:dlq",
    "keys": "keys:keys",
    "context": "contexts:contexts",
}
"""By name: the module in `waybill.cli`, and the function or group in it."""


class LazyCommands(Mapping[str, "Command"]):
    """All commands of PLACES, each made at its first use; `complete` adds the options that all
    have."""

    def __init__(self, complete: "Callable[[Command], None]") -> None:
        self._complete = complete
        self._made: dict[str, Command] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)

    def __getitem__(self, name: str) -> "Command":
        if name not in self._made:
            made = _make(name)
            self._complete(made)
            self._made[name] = made
        return self._made[name]


def _make(name: str) -> "Command":
    module, _, member = PLACES[name].partition(":")
    found = getattr(import_module(f"waybill.cli.{module}"), member)
    parent = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        parent.add_typer(found, name=name)
    else:
        parent.command(name)(found)
    return typer.main.get_group(parent).commands[name]
