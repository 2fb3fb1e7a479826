"""Which fields of a stage's records are no columns, so that people hear of a misspelled one."""

from collections.abc import Iterable
from typing import Final

from waybill_shared.contract.events import IgnoredFields

NAMES_MAX: Final = 20  # that people are warned of, in an input: records may have any number
NAME_CHARACTERS: Final = 100
WARNING_CHARACTERS_MAX: Final = 300  # all of them go into one message of Kafka


class Ignored:
    """What this driver has met in one stage. Its query tells, and whoever watches it asks."""

    def __init__(self) -> None:
        self._inputs: dict[str, IgnoredFields] = {}

    def met(self, source: str, records: int, warnings: Iterable[str]) -> None:
        if not records:
            return
        before = self._inputs.get(source, IgnoredFields(input=source, records=0, warnings=()))
        short = (warning[:WARNING_CHARACTERS_MAX] for warning in warnings)
        known = dict.fromkeys((*before.warnings, *short))
        self._inputs[source] = IgnoredFields(
            input=source, records=before.records + records, warnings=tuple(known)[:NAMES_MAX]
        )

    def inputs(self) -> tuple[IgnoredFields, ...]:
        return tuple(self._inputs.values())


def unite(stages: Iterable[Ignored]) -> tuple[IgnoredFields, ...]:
    """Of an input that several stages read, what the one says that has met most."""
    found: dict[str, IgnoredFields] = {}
    for each in (each for stage in stages for each in stage.inputs()):
        if each.input not in found or found[each.input].records < each.records:
            found[each.input] = each
    return tuple(found.values())
