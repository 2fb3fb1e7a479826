"""How long a token lives. The topics that a token needs keep their records as long.

A test holds `retention.ms` in `schemas/topics` and the figures of the pages against it.
"""

from typing import Final

DAY_MS: Final = 24 * 3_600_000
TOKEN_LIFE_DAYS: Final = 30
TOKEN_LIFE_MS: Final = TOKEN_LIFE_DAYS * DAY_MS
TOKEN_LIFE: Final = f"{TOKEN_LIFE_DAYS} days"
"""The life of a token as manifests, errors and pages write it."""

WATCH_LIFE_MS: Final = TOKEN_LIFE_MS + DAY_MS
"""How long watches are kept: a day longer, so a watch outlives its token."""
