"""What is asked of a token: all of its way, or a part of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field, with_config

from waybill_shared.contract.words import TokenLevel

NAME_CHARACTERS_MAX: Final = 100
SINKS_MAX: Final = 100


def _in_order(names: Sequence[str]) -> tuple[str, ...]:
    """Each once: one question has one view."""
    return tuple(sorted(set(names)))


SinkNames = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)], ...],
    Field(max_length=SINKS_MAX),
    AfterValidator(_in_order),
]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """`sinks`: by name, those that are waited for, also such that another stage reads; none: all
    at the end of the pipeline. Each part of the token must wait for one of them."""

    level: TokenLevel = TokenLevel.VISIBLE
    sinks: SinkNames = ()


WHOLE: Final = TokenView()
