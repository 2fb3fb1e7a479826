"""Counts what a stage leaves out or lets pass, for people.

That is fields that are no columns, so that people find a misspelled one. And it is, by rule, the
records that are dropped or only warned of.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from waybill_shared.contract.driver_news import IgnoredFields

NAMES_MAX: Final = 20  # that people are warned of, in an input: records may have any number
NAME_CHARACTERS: Final = 100
WARNING_CHARACTERS_MAX: Final = 300  # all of them go into one message of Kafka


class Ignored:
    """The records that this driver has left out or let pass in one stage.

    Its query reports it, and the watcher reads it.
    """

    def __init__(self) -> None:
        self._inputs: dict[str, IgnoredFields] = {}

    def count_unknown(self, source: str, records: int, warnings: Iterable[str]) -> None:
        if not records:
            return
        before = self._of(source)
        short = (warning[:WARNING_CHARACTERS_MAX] for warning in warnings)
        known = tuple(dict.fromkeys((*before.warnings, *short)))[:NAMES_MAX]
        self._inputs[source] = replace(before, records=before.records + records, warnings=known)

    def count_dropped(self, source: str, rule: str, records: int) -> None:
        before = self._of(source)
        counts = {**before.dropped, rule: before.dropped.get(rule, 0) + records}
        self._inputs[source] = replace(before, dropped=counts)

    def count_warned(self, source: str, rule: str, records: int) -> None:
        before = self._of(source)
        counts = {**before.warned, rule: before.warned.get(rule, 0) + records}
        self._inputs[source] = replace(before, warned=counts)

    def inputs(self) -> tuple[IgnoredFields, ...]:
        return tuple(self._inputs.values())

    def _of(self, source: str) -> IgnoredFields:
        return self._inputs.get(source, IgnoredFields(input=source, records=0, warnings=()))


def unite(stages: Iterable[Ignored]) -> tuple[IgnoredFields, ...]:
    """Unite the reports of stages.

    If several stages read an input, the one that has seen most counts.
    """
    found: dict[str, IgnoredFields] = {}
    for each in (each for stage in stages for each in stage.inputs()):
        if each.input not in found or _count_records(found[each.input]) < _count_records(each):
            found[each.input] = each
    return tuple(found.values())


def _count_records(ignored: IgnoredFields) -> int:
    return ignored.records + sum(ignored.dropped.values()) + sum(ignored.warned.values())
