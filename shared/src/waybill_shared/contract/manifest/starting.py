"""Where a manifest lets a stage begin in an input that it has never read.

A time becomes offsets once, in the stage runner. Nothing here reads the clock.
"""

from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from waybill_shared.contract.beginnings import BEGINNINGS, read_time
from waybill_shared.contract.suggestions import nearest

EXAMPLES: Final = ["earliest", "latest", "2026-11-01T00:00:00Z", "7 days ago"]
PATTERN: Final = (
    r"^(earliest|latest|\d{1,5} (minute|hour|day|week)s? ago"
    r"|\d{4}-\d\d-\d\d.+(Z|[+-]\d\d:\d\d))$"
)
"""For editors. It permits some dates that there are not."""
IN_QUOTES: Final = 'a time is in quotes, as in startingOffsets: "2026-11-01T00:00:00Z"'


def _check(text: str) -> str:
    try:
        read_time(text)
    except ValueError as error:
        close = nearest(text, BEGINNINGS)
        hint = f"did you mean {close!r}?" if close else IN_QUOTES
        said = {"message": str(error), "hint": hint}
        raise PydanticCustomError("property", "{message}", said) from error
    return text


StartingOffsets = Annotated[
    str, AfterValidator(_check), Field(examples=EXAMPLES, json_schema_extra={"pattern": PATTERN})
]
