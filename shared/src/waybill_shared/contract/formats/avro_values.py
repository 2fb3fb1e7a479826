"""Logical types in containers of others, by the library, whatever they hold: nothing in one may
take longer than its bytes do, or end in an error that nobody expects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from fastavro.read import LOGICAL_READERS

from waybill_shared.contract.manifest.values import DECIMAL_CONTEXT

DECIMAL_BYTES_MAX: Final = 64  # columns take 38 digits, which are 16 bytes


@dataclass(frozen=True, slots=True)
class NoValue:
    """Placeholder for a value of a logical type that its bytes do not define."""

    reason: str


def reason_in(value: object) -> str | None:
    """Return the reason of the first `NoValue` inside of `value`; None if there is none."""
    match value:
        case NoValue(reason):
            return reason
        case dict():
            return next(filter(None, map(reason_in, value.values())), None)
        case list():
            return next(filter(None, map(reason_in, value)), None)
        case _:
            return None


def _decimal(
    value: bytes, written: Mapping[str, int] | None, _: object = None
) -> Decimal | NoValue:
    """Read a decimal that has few bytes: to make a number from many bytes takes hours."""
    if len(value) > DECIMAL_BYTES_MAX:
        return NoValue(f"a decimal has {len(value)} bytes, {DECIMAL_BYTES_MAX} is the most")
    digits = int.from_bytes(value, "big", signed=True)
    try:
        return Decimal(digits).scaleb(-(written or {}).get("scale", 0), DECIMAL_CONTEXT)
    except (ArithmeticError, ValueError):
        return NoValue("a decimal has a scale beyond all bounds")


def _careful(kind: str, read: Callable[..., object]) -> Callable[..., object]:
    def careful(*given: object) -> object:
        try:
            return read(*given)
        except (ArithmeticError, ValueError, TypeError):
            return NoValue(f"a value of Avro's {kind} is out of its range")

    return careful


OF_TIME: Final = ("int-date", "long-timestamp-millis", "long-timestamp-micros")
for _kind in (*OF_TIME, "long-local-timestamp-millis", "long-local-timestamp-micros"):
    LOGICAL_READERS[_kind] = _careful(_kind.partition("-")[2], LOGICAL_READERS[_kind])
LOGICAL_READERS["string-uuid"] = lambda text, *_: text  # as it was sent
LOGICAL_READERS["bytes-decimal"] = LOGICAL_READERS["fixed-decimal"] = _decimal
