"""Any number of texts that somebody might send: `python -m tests.sql.fuzz --seed 1 --count 20000`.

A grammar over Spark's own statements, functions and clauses. None of them may do anything while it
is checked: leave a file, start a process, open a connection, run a job.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

COLUMNS = """
order_id
customer
amount
placed_at
tags
`order_id`
o.customer
tags[0]
""".strip().splitlines()
CONSTANTS = """
1
-3
10000
1.5
1e3
'x'
'%s'
'/etc/passwd'
'a INT'
NULL
TRUE
X'AB'
DATE '2026-01-01'
INTERVAL 1 DAY
INTERVAL '1-2' YEAR TO MONTH
current_date
current_user
'${env:PATH}'
:name
?
''
'java.lang.System'
'getenv'
'{"a": 1}'
U&'\\0041'
""".strip().splitlines()
OPERATORS = """
+
-
*
/
%
DIV
||
&
|
^
=
<>
<=>
<
>=
AND
OR
LIKE
RLIKE
ILIKE
::
""".strip().splitlines()
TYPES = """
INT
STRING
DECIMAL(10, 2)
ARRAY<INT>
STRUCT<a: INT>
MAP<STRING, INT>
TIMESTAMP
BINARY
VARIANT
INTERVAL DAY
TIME
VOID
""".strip().splitlines()
TABLES = """
orders
others
orders AS o
ORDERS o
`orders`
secrets
text.`/etc/passwd`
csv.`file:///etc/passwd`
a.b.c
IDENTIFIER('orders')
IDENTIFIER(concat('or', 'ders'))
range(10)
explode(array(1, 2)) AS t(x)
VALUES (1, 'a'), (2, reflect('a', 'b')) AS v(a, b)
orders TIMESTAMP AS OF '2026-01-01'
orders VERSION AS OF 1
STREAM orders
orders WITH ('path' = '/etc')
my_function(TABLE(orders))
JSON.`/tmp`
""".strip().splitlines()
COMMANDS = """
CREATE TABLE t USING csv LOCATION '{folder}/made' AS {query}
CREATE VIEW v AS {query}
CREATE TEMPORARY VIEW v USING text OPTIONS (path '/etc/passwd')
INSERT INTO t {query}
INSERT OVERWRITE DIRECTORY '{folder}/made' USING csv {query}
INSERT OVERWRITE LOCAL DIRECTORY '{folder}/made' USING json {query}
FROM orders INSERT OVERWRITE DIRECTORY '{folder}/made' USING csv SELECT order_id
WITH c AS ({query}) INSERT OVERWRITE DIRECTORY '{folder}/made' USING csv SELECT * FROM c
CREATE DATABASE d LOCATION '{folder}/made'
CREATE TABLE t (a INT) USING parquet LOCATION '{folder}/made'
CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN {expression}
ADD JAR '{folder}/made.jar'
ADD FILE '/etc/passwd'
SET spark.sql.runSQLOnFiles = true
RESET
SET TIME ZONE LOCAL
CACHE TABLE c AS {query}
EXPLAIN {query}
DESCRIBE QUERY {query}
SHOW TABLES
REFRESH '/etc'
EXECUTE IMMEDIATE '{query}'
BEGIN {query}; END
DECLARE x INT DEFAULT {expression}
MERGE INTO t USING ({query}) AS s ON true WHEN MATCHED THEN DELETE
DELETE FROM t WHERE {expression}
LOAD DATA INPATH '/etc/passwd' INTO TABLE t
ANALYZE TABLE orders COMPUTE STATISTICS
TRUNCATE TABLE t
DROP VIEW orders
USE d
CALL system.p({expression})
EXPORT TABLE t TO '/tmp'
""".strip().splitlines()
ODD = ("/* x */ ", "-- x\n", "\n\t", "\u00a0", "\ufeff", "/*+ REPARTITION(3) */ ", "\u2028", ";")


class Texts:
    """What one seed makes. `functions` are all names that Spark knows."""

    def __init__(self, seed: int, functions: Sequence[str], folder: Path) -> None:
        self._dice = Random(seed)
        self._functions = [name for name in functions if name.isidentifier()]
        self._folder = folder

    def some(self, count: int) -> Iterator[str]:
        for _ in range(count):
            yield self._strange(self._command() if self._dice.random() < 0.15 else self._query(3))

    def _pick(self, of: Sequence[str]) -> str:
        return self._dice.choice(of)

    def _command(self) -> str:
        text = self._pick(COMMANDS).replace("{folder}", str(self._folder))
        return text.replace("{query}", self._query(1)).replace("{expression}", self._expression(1))

    def _query(self, deep: int) -> str:
        if deep <= 0:
            return f"SELECT {self._expression(1)} AS x FROM {self._pick(TABLES)}"
        shape = self._dice.randrange(8)
        inner = self._query(deep - 1)
        match shape:
            case 0:
                return f"WITH c AS ({inner}) SELECT * FROM c"
            case 1:
                union = self._pick(["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "MINUS"])
                return f"{inner} {union} {self._query(deep - 2)}"
            case 2:
                return f"SELECT {self._expression(2)} AS x FROM ({inner}) AS o"
            case 3:
                return f"FROM {self._pick(TABLES)} |> WHERE {self._expression(2)} |> SELECT *"
            case 4:
                return f"SELECT o.*, l.* FROM orders o, LATERAL ({inner}) AS l"
            case _:
                return self._select(deep)

    def _select(self, deep: int) -> str:
        columns = ", ".join(
            f"{self._expression(deep)} AS c{number}" for number in range(self._dice.randint(1, 3))
        )
        text = f"SELECT {columns} FROM {self._pick(TABLES)}"
        for clause in (
            "LATERAL VIEW explode({}) t AS y", "WHERE {}", "GROUP BY {}", "HAVING {}",
            "ORDER BY {}",
            "LIMIT {}", "WINDOW w AS (PARTITION BY {})", "TABLESAMPLE (10 PERCENT)", "SORT BY {}",
            "PIVOT (sum(amount) FOR customer IN ({}))", "JOIN others ON {}", "CLUSTER BY {}",
        ):  # fmt: skip
            if self._dice.random() < 0.12:
                text += " " + clause.replace("{}", self._expression(deep - 1))
        return text

    def _expression(self, deep: int) -> str:
        if deep <= 0:
            return self._pick(COLUMNS if self._dice.random() < 0.5 else CONSTANTS)
        one, other = self._expression(deep - 1), self._expression(deep - 2)
        match self._dice.randrange(12):
            case 0:
                return f"CAST({one} AS {self._pick(TYPES)})"
            case 1:
                return f"CASE WHEN {one} THEN {other} ELSE {one} END"
            case 2:
                return f"({one} {self._pick(OPERATORS)} {other})"
            case 3:
                return f"transform(tags, t -> {one})"
            case 4:
                return (
                    f"({self._query(0)})"
                    if self._dice.random() < 0.5
                    else f"EXISTS ({self._query(0)})"
                )
            case 5:
                return f"{one} IN ({other}, {self._query(0)})"
            case 6:
                return f"{self._called()}({one}) OVER (PARTITION BY {other} ORDER BY {one})"
            case 7:
                return f"array({one}, {other})[0]"
            case _:
                count = self._dice.randint(0, 3)
                return f"{self._called()}({', '.join([one, other, one][:count])})"

    def _called(self) -> str:
        name = self._pick(self._functions)
        match self._dice.randrange(12):
            case 0:
                return name.upper()
            case 1:
                return f"`{name}`"
            case 2:
                return f"system.builtin.{name}"
            case 3:
                return f"IDENTIFIER('{name}')"
            case _:
                return name

    def _strange(self, text: str) -> str:
        if self._dice.random() < 0.2:
            at = self._dice.choice([0, *(i for i, c in enumerate(text) if c == " ")])
            text = text[:at] + " " + self._pick(ODD) + text[at:]
        if self._dice.random() < 0.05:
            text = text[: self._dice.randrange(len(text))]
        return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20_000, help="texts")
    chosen = parser.parse_args()
    test = Path(__file__).parents[1] / "integration/spark/test_guard.py"
    return int(
        pytest.main([
            str(test), "-k", "nothing_happens", "-n0", "-q",
            f"--sql-seed={chosen.seed}", f"--sql-count={chosen.count}",
        ])
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
