"""Checks the rows of a request's body: their bytes and keys, and why one is refused.

JSON is never written again: Kafka gets what was sent. Spark parses the same bytes later, and must
not see another row than was checked here. So what two parsers read differently is refused.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

from waybill_ingress.core.encoders.form import RecordForm
from waybill_ingress.core.scanning import deeper
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.manifest.columns import Column, refusal, unknown_field
from waybill_shared.contract.problems import Slug

DEPTH_MAX = 64  # far below the 1000 that Spark's parser accepts
NUMBER_CHARACTERS_MAX = 1_000  # Spark's parser refuses longer ones, wherever they are
NAME_CHARACTERS_MAX = 50_000  # likewise
REJECTED_MAX: Final = 10_000  # named in one answer
NAMED_OF_TOO_MANY: Final = 100
WHOLE_RECORDS_MAX: Final = 10_000
WHOLE_BYTES_MAX: Final = 10_000_000
"""Limits of a request that counts completely or not at all: its transaction must be short."""
NOTHING_WRITTEN: Final = "nothing was written"
TOO_DEEP: Final = f"nested deeper than {DEPTH_MAX}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRule:
    """The rows that one input accepts: its columns, and the column that is the key.

    `strict`: a field that is no column is refused. `deletes`: the column that marks deleted rows.
    `form`: the form of its records in Kafka. None is JSON: then what was sent is kept.
    """

    columns: tuple[Column, ...]
    key: str | None
    strict: bool = False
    deletes: str | None = None
    form: RecordForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    """Limits of one request. `bytes_max` is of all its records with their keys."""

    records_max: int
    record_bytes_max: int
    bytes_max: int

    def of_whole(self) -> "RowLimits":
        return replace(
            self,
            records_max=min(self.records_max, WHOLE_RECORDS_MAX),
            bytes_max=min(self.bytes_max, WHOLE_BYTES_MAX),
        )


class Record(NamedTuple):
    row: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True, order=True)
class Rejection:
    index: int
    reason: str


Keep = Callable[[Record], None]


def row_refusal(problem: Slug, reason: str, **members: object) -> Refusal:
    """Return the refusal of a complete body."""
    return Refusal(problem, f"{reason}; {NOTHING_WRITTEN}", **members)


class RowReader:
    """A reader of the rows of one body. Good rows go to `keep`, the others are named in `rejected`.
    If the body itself is wrong, it raises.

    Hooks of the parser note complaints and do not raise, so that the end of a refused array element
    is still found.
    """

    def __init__(self, rule: RowRule, limits: RowLimits, keep: Keep) -> None:
        self.rule = rule
        self.limits = limits
        self.rejected: list[Rejection] = []
        self.count = 0
        self.where: Callable[[], str] | None = None  # where a row starts, if its reader knows
        self._bytes = 0
        self._keep = keep
        self._complaints: list[str] = []
        # Rows that are too short for an overlong number or name need no hooks for them.
        self._quick = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=Decimal, parse_constant=self._constant
        )

    @cached_property
    def _careful(self) -> json.JSONDecoder:
        return json.JSONDecoder(
            object_pairs_hook=self._long_object,
            parse_float=self._float,
            parse_int=self._integer,
            parse_constant=self._constant,
        )

    @property
    def complaint(self) -> str | None:
        """The fault in the text that was parsed last, although it is JSON."""
        return self._complaints[0] if self._complaints else None

    def take_line(self, raw: bytes, key: bytes | None = None) -> None:
        """Read a row as JSON text. `key` is given if it does not come from a column."""
        value: object = None
        reason: str | None = None
        self._complaints.clear()
        if len(raw) <= self.limits.record_bytes_max:
            decoder = self._quick if len(raw) <= NUMBER_CHARACTERS_MAX else self._careful
            try:
                value = decoder.decode(raw.decode())
            except UnicodeDecodeError as error:
                reason = f"byte {error.start + 1} is not UTF-8"
            except json.JSONDecodeError as error:
                reason = f"not JSON at character {error.pos + 1}: {error.msg}"
            except RecursionError:
                reason = TOO_DEEP
            except ArithmeticError:
                reason = "a number has an exponent beyond all bounds"
        self.take(raw, value, reason, key)

    def decode_next(self, text: str, at: int) -> tuple[object, int]:
        """Parse the JSON value that starts there. Return it and its end; errors of the
        parser pass.
        """
        self._complaints.clear()
        return self._careful.raw_decode(text, at)

    def take(
        self, raw: bytes, value: object, reason: str | None = None, key: bytes | None = None
    ) -> None:
        """Keep the row, or reject it with the reason."""
        self.take_checked(*self._check(raw, value, reason, key))

    def take_together(self, rows: Sequence[tuple[bytes, object, str | None]]) -> None:
        """Keep all these rows, which are one record of the body, or reject them with the reason."""
        checked = [self._check(raw, value, reason, None) for raw, value, reason in rows]
        wrong = [
            reason for raw, key, given in checked if (reason := given or self._large(raw, key))
        ]
        if wrong:
            self.reject(wrong[0], b"\n".join(raw for raw, _, _ in checked))
            return
        row = self.next()
        for raw, key, _ in checked:
            self._put(row, raw, key)

    def _check(
        self, raw: bytes, value: object, reason: str | None, key: bytes | None
    ) -> tuple[bytes, bytes | None, str | None]:
        if len(raw) > self.limits.record_bytes_max:
            reason = self.too_long(len(raw))
        reason = reason or self._refusal(raw, value)
        if reason is None and self.rule.key is not None:
            assert isinstance(value, dict)
            key, reason = _key_of(value, self.rule.key, raw)
        if reason is None and self.rule.form is not None:
            assert isinstance(value, dict)
            try:
                raw = self.rule.form.write(value)
            except ValueError as error:
                reason = str(error)
        return raw, key, reason

    def take_made(self, raw: bytes, key: bytes | None) -> None:
        """Keep JSON that was made from values which the columns accept."""
        if self.rule.form is None:
            self.take_checked(raw, key)
        else:
            self.take_line(raw)

    def take_record(self, raw: bytes, key: bytes | None) -> None:
        """Keep a record that has its final form for Kafka already."""
        reason: str | None = None
        if self.rule.form is None or len(raw) > self.limits.record_bytes_max:
            self.take_line(raw, key)
            return
        try:
            own = self.rule.form.key_of(raw, self.rule.key)
            key = key if self.rule.key is None else own
        except ValueError as error:
            reason = str(error)
        self.take_checked(raw, key, reason)

    def take_checked(self, raw: bytes, key: bytes | None, reason: str | None = None) -> None:
        """Keep a row that was checked against the columns already."""
        reason = reason or self._large(raw, key)
        if reason is not None:
            self.reject(reason, raw)
        else:
            self._put(self.next(), raw, key)

    def _large(self, raw: bytes, key: bytes | None) -> str | None:
        if len(raw) + len(key or b"") > self.limits.record_bytes_max:
            return f"with its key more than {self.limits.record_bytes_max} bytes"
        return None

    def _put(self, row: int, raw: bytes, key: bytes | None) -> None:
        self._bytes += len(raw) + len(key or b"")
        if self._bytes > self.limits.bytes_max:
            most = self.limits.bytes_max
            detail = f"the records of one request have more than {most} bytes: send parts"
            raise Refusal(Slug.BODY_TOO_LARGE, detail, bytes_max=most)
        self._keep(Record(row, key, raw))

    def reject(self, reason: str, raw: bytes = b"") -> None:
        """Reject the row. `raw` is its text, as far as it is known."""
        self.rejected.append(Rejection(self.next(), reason))
        if len(self.rejected) > REJECTED_MAX:
            detail = f"more than {REJECTED_MAX} records do not fit; {NOTHING_WRITTEN}"
            named = [asdict(each) for each in self.rejected[:NAMED_OF_TOO_MANY]]
            raise Refusal(Slug.RECORDS_REJECTED, detail, rejected=named)

    def reject_long(self, size: int) -> None:
        self.reject(self.too_long(size))

    def end(self) -> None:
        if self.count == 0:
            raise Refusal(Slug.NO_RECORDS, "the body holds no record")

    def too_long(self, size: int) -> str:
        return f"{size} bytes, {self.limits.record_bytes_max} is the most"

    def next(self) -> int:
        self.count += 1
        if self.count > self.limits.records_max:
            detail = f"more than {self.limits.records_max} records in one request: send parts"
            raise Refusal(Slug.TOO_MANY_RECORDS, detail, records_max=self.limits.records_max)
        return self.count - 1

    def too_deep(self, brackets: int, value: object, depth: int = DEPTH_MAX) -> bool:
        """Return True if the value is nested too deeply. `brackets` is how many its text opens."""
        return brackets > depth and deeper(value, depth)

    def _refusal(self, raw: bytes, value: object) -> str | None:
        if self._complaints:
            return self.complaint
        if self.too_deep(raw.count(b"{") + raw.count(b"["), value):
            return TOO_DEEP
        reason = refusal(self.rule.columns, value)
        if reason is None and self.rule.strict:
            assert isinstance(value, dict)
            reason = unknown_field(self.rule.columns, value)
        return reason

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            self._complaints.append(f"the name {twice[:100]!r} is there twice in one object")
        return found

    def _long_object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        if any(len(name) > NAME_CHARACTERS_MAX for name, _ in pairs):
            self._complaints.append(f"a name is longer than {NAME_CHARACTERS_MAX} characters")
        return self._object(pairs)

    def _constant(self, text: str) -> None:
        self._complaints.append(f"{text} is not JSON")

    def _integer(self, text: str) -> int:
        return int(text) if self._short(text) else 0

    def _float(self, text: str) -> Decimal:
        try:
            return Decimal(text) if self._short(text) else Decimal(0)
        except ArithmeticError:
            self._complaints.append("a number has an exponent beyond all bounds")
            return Decimal(0)

    def _short(self, text: str) -> bool:
        if len(text) <= NUMBER_CHARACTERS_MAX:
            return True
        self._complaints.append(f"a number is longer than {NUMBER_CHARACTERS_MAX} characters")
        return False


def _key_of(row: dict[str, object], name: str, raw: bytes) -> tuple[bytes | None, str | None]:
    """Return the text of the key, or the reason why the row has no safe key."""
    value = row.get(name)
    match value:
        case None:
            return None, None
        case bool():
            text = "true" if value else "false"
        case int():
            text = str(value)
        case Decimal():
            text = str(json.loads(raw, parse_float=str)[name])  # 1.50 stays 1.50
        case str():
            text = value
        case _:
            return None, f"{name}: the key is a string, a number or a boolean"
    return text.encode(), None
