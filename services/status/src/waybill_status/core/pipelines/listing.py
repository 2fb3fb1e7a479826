"""Selects pipelines for a page of their list, by what a question names. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.errors import UserError, invalid
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle import Phase

LIMIT_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWanted:
    """The filter of a page of the list: pipelines in one of `phases`, with all of `tags`, and with
    a name after `after`. Nothing named: all."""

    phases: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    after: str = ""
    limit: int = LIMIT_MAX

    def has_place_for(self, record: PipelineRecord) -> bool:
        """Return True if the pipeline belongs to the page, as far as its record says."""
        return record.name > self.after and (not self.tags or self.tags <= tags_of(record))


def list_wanted(
    phases: Iterable[str], tags: Iterable[str], *, after: str, cursor: str, limit: int
) -> ListWanted:
    """Return what is wanted. Raises Refusal for a phase that does not exist."""
    named = frozenset(phases)
    if unknown := sorted(named - set(Phase)):
        raise invalid("query.phase", f"{unknown[0]!r:.100} is no phase: use {', '.join(Phase)}")
    if after and cursor:
        raise invalid("query.cursor", "`after` is there as well: name one of them")
    return ListWanted(phases=named, tags=frozenset(tags), after=after or cursor, limit=limit)


def tags_of(record: PipelineRecord) -> frozenset[str]:
    """Return the tags of the manifest; none of one that is refused today."""
    try:
        return frozenset(record.manifest.model.tags)
    except UserError:
        return frozenset()
