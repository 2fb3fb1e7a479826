"""Hints for names that nobody knows: the likeliest first, then what is there."""

import difflib
from collections.abc import Sequence

ALIKE = 0.6  # of 1; below it a guess would mislead
LISTED_MAX = 20  # more names are no help, and a hint is one line


def nearest(wanted: str, known: Sequence[str]) -> str | None:
    close = difflib.get_close_matches(wanted, known, n=1, cutoff=ALIKE)
    return close[0] if close else None


def hint_of_names(wanted: str, known: Sequence[str], what: str) -> str:
    """Return a hint as in `did you mean 'orders'? known pipelines: orders, payments`; empty without
    names.
    """
    if not known:
        return ""
    more = f", and {len(known) - LISTED_MAX} more" if len(known) > LISTED_MAX else ""
    listed = f"{what}: {', '.join(known[:LISTED_MAX])}{more}"
    close = nearest(wanted, known)
    return listed if close is None else f"did you mean {close!r}? {listed}"
