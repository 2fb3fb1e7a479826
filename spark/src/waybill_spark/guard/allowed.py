"""Reads the lists of what SQL may hold, `allowed.yaml`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from waybill_shared.contract.lifecycle_events import SqlGuard
from waybill_spark.guard.judge import Allowed, Names, Refused

LISTS = Path(__file__).with_name("allowed.yaml")


@cache
def read_lists() -> Mapping[str, Any]:
    lists: Mapping[str, Any] = YAML(typ="safe").load(LISTS)
    return lists


@cache
def read_allowed(guard: SqlGuard = "strict") -> Allowed:
    lists = read_lists()
    strict = Allowed(
        functions=_names(lists["functions"]),
        tables=_names(lists["tables"]),
        expressions=frozenset(kinds(lists["expressions"]["allowed"])),
        parsed=frozenset(kinds(lists["parsed"]["allowed"])),
        analyzed=frozenset(kinds(lists["analyzed"]["allowed"])),
        executed=frozenset(
            (*kinds(lists["executed"]["allowed"]), *kinds(lists["expressions"]["executed"]))
        ),
    )
    return strict if guard == "strict" else _trust(strict, lists)


def _trust(strict: Allowed, lists: Mapping[str, Any]) -> Allowed:
    """Return lists that allow all but commands, also what nobody has examined."""
    return replace(
        strict,
        functions=replace(strict.functions, any=True),
        tables=replace(strict.tables, any=True),
        expressions=strict.expressions | set(kinds(lists["expressions"]["refused"])),
        parsed=strict.parsed | set(kinds(lists["parsed"]["trusted"])),
        analyzed=strict.analyzed | set(kinds(lists["analyzed"]["trusted"])),
        bounded=False,
    )


def kinds(by_package: Mapping[str, Iterable[str]]) -> Iterable[str]:
    return (f"{package}.{name}" for package, names in by_package.items() for name in names)


def _names(listed: Mapping[str, Any]) -> Names:
    return Names(
        allowed=frozenset(listed["allowed"]),
        refused={
            name: Refused(reason=each["reason"], hint=each.get("hint", ""))
            for each in listed["refused"]
            for name in each["names"]
        },
    )
