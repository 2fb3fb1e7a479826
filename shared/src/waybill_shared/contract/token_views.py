"""What is asked of a token: all of its way, or a part of it."""

from dataclasses import dataclass
from typing import Final

from pydantic import ConfigDict, with_config

from waybill_shared.contract.words import TokenLevel


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """`sinks`: by name, those that are waited for, also such that another stage reads; none: all
    at the end of the pipeline. Pipelines that have none of them are not waited for."""

    level: TokenLevel = TokenLevel.VISIBLE
    sinks: tuple[str, ...] = ()


WHOLE: Final = TokenView()
