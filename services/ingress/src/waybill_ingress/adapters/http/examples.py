"""Examples of refused commands for the documentation: members of a problem that are those of its
operation, because the command was refused after it was accepted."""

from typing import Final

from waybill_shared.contract.words import Action
from waybill_shared.http.examples import example
from waybill_shared.http.openapi import Members

_REFUSED: Final[dict[str, Members]] = example("ingress/refused_commands")


def members_of(*actions: Action) -> Members:
    """Return the members of each problem that such a command may have."""
    return {name: found for each in actions for name, found in _REFUSED[each].items()}
