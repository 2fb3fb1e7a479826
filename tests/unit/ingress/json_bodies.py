"""Bodies of JSON rows as tests read them: lines, values, and why a row is refused."""

from unit.ingress.bodies import Rows, rows_of
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.bodies.values import read_values
from waybill_ingress.core.rows import RowLimits, RowRule
from waybill_shared.contract.manifest.columns import parse_columns

LIMITS = RowLimits(records_max=100, record_bytes_max=5_000, bytes_max=10_000_000)
COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10,2), more STRUCT<a: INT>"


def rule(key: str | None = None) -> RowRule:
    return RowRule(columns=parse_columns(COLUMNS), key=key)


def ndjson(body: bytes, key: str | None = None, limits: RowLimits = LIMITS) -> Rows:
    return rows_of(read_ndjson, body, rule(key), limits)


def array(body: bytes, key: str | None = None, limits: RowLimits = LIMITS) -> Rows:
    return rows_of(read_values, body, rule(key), limits)


def reasons(rows: Rows) -> dict[int, str]:
    return {rejection.index: rejection.reason for rejection in rows.rejected}
