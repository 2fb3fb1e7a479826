"""Examples of refused commands for the documentation: members of a problem that are those of its
operation, because the command was refused after it was accepted."""

from collections.abc import Mapping
from typing import Any, Final

from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action
from waybill_shared.http.examples import example

_REFUSED: Final = example("ingress/refused_commands")


def members_of(*actions: Action) -> Mapping[Slug, dict[str, Any]]:
    """Return the members of each problem that such a command may have."""
    slugs = {str(slug): slug for slug in Slug}
    return {slugs[name]: found for each in actions for name, found in _REFUSED[each].items()}
