"""Tables as SQL: what they say of columns and key, and what is refused, by name and place."""

import pytest

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.inputs import Input
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.tables import is_table, parse_table, parse_tables

PRICE = """\
-- What a part costs, and where.
CREATE TABLE price (
    part BIGINT NOT NULL,
    vendor BIGINT NOT NULL,
    price DECIMAL
);
"""


def manifest(schema: str, more: str = "") -> str:
    lines = "\n".join(f"      {line}".rstrip() for line in schema.splitlines())
    return f"""\
version: 1
name: shop
inputs:
  - name: price
    kafka: {{topic: price}}
    schema: |
{lines}
{more}stages:
  - {{name: load, inputs: [price], sinks: [{{name: rows, kafka: {{topic: rows}}}}]}}
"""


def input_of(schema: str, more: str = "") -> Input:
    return read_manifest(manifest(schema, more)).model.inputs[0]


def problem_of(text: str) -> Problem:
    with pytest.raises(UserError) as caught:
        read_manifest(text)
    (problem,) = caught.value.problems
    return problem


def test_a_table_is_its_columns() -> None:
    found = input_of(PRICE)
    assert found.columns == "part BIGINT NOT NULL, vendor BIGINT NOT NULL, price DECIMAL(10,0)"
    assert [(each.name, each.required) for each in found.list_columns()] == [
        ("part", True),
        ("vendor", True),
        ("price", False),
    ]
    assert found.key is None


@pytest.mark.parametrize(
    "sql",
    [
        "create table price (id bigint not null primary key, name varchar)",
        "CREATE TABLE IF NOT EXISTS Price (id INT8 PRIMARY KEY NOT NULL, name TEXT NULL);",
        'CREATE TABLE "PRICE" ("id" BIGINT, name STRING, PRIMARY KEY (ID)) ;',
        "/* a\n table */ CREATE -- so\nTABLE `price` (id BIGINT PRIMARY KEY, -- it\n name STRING)",
    ],
)
def test_the_primary_key_is_the_key_and_never_null(sql: str) -> None:
    found = input_of(sql)
    assert (found.columns, found.key) == ("id BIGINT NOT NULL, name STRING", "id")


def test_of_a_key_of_several_columns_the_first_keeps_records_in_order() -> None:
    sql = "CREATE TABLE price (part BIGINT, vendor BIGINT, price INT, PRIMARY KEY (vendor, part))"
    found = input_of(sql)
    assert found.key == "vendor"
    assert found.columns == "part BIGINT NOT NULL, vendor BIGINT NOT NULL, price INT"
    assert input_of(sql, "    key: part\n").key == "part"


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("INTEGER", "INT"),
        ("varchar", "STRING"),
        ("double precision", "DOUBLE"),
        ("REAL", "FLOAT"),
        ("NUMERIC(12, 2)", "DECIMAL(12,2)"),
        ("BOOL", "BOOLEAN"),
        ("BIGINT ARRAY", "ARRAY<BIGINT>"),
        ("MAP<VARCHAR, TEXT ARRAY>", "MAP<STRING,ARRAY<STRING>>"),
        ("STRUCT<a: INT4, `b c`: DATE>", "STRUCT<a: INT, `b c`: DATE>"),
    ],
)
def test_types_may_have_their_names_of_sql(written: str, ours: str) -> None:
    assert parse_table(f"CREATE TABLE t (a {written})").columns == f"a {ours}"


def test_names_in_quotes_are_taken_as_they_stand() -> None:
    table = parse_table('CREATE TABLE t ("Order no." INT, "a ""b""" INT, comment TEXT)')
    assert table.columns == '`Order no.` INT, `a "b"` INT, comment STRING'


@pytest.mark.parametrize(
    ("sql", "seen"),
    [
        ("CREATE TABLE t (a SMALLINT)", (1, 19, "unknown type SMALLINT")),
        ("CREATE TABLE t (\n  a INT,\n  b VARCHAR(20))", (3, 5, "the length of a text is not")),
        ("CREATE TABLE t (a INT LATENESS 5)", (1, 23, "LATENESS is not accepted")),
        ("CREATE TABLE t (a INT DEFAULT 5)", (1, 23, "DEFAULT is not accepted")),
        ("CREATE TABLE t (a INT, b AS a * 2)", (1, 26, "AS is not accepted")),
        ("CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a))", (1, 30, "GENERATED is not")),
        ("CREATE TABLE t (a INT, CHECK (a > 0))", (1, 24, "CHECK is not accepted")),
        ("CREATE TABLE t (a INT REFERENCES u)", (1, 23, "REFERENCES is not accepted")),
        (
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u)",
            (1, 24, "FOREIGN is not accepted"),
        ),
        (
            "CREATE TABLE t (a INT) WITH (é = 1)",
            (1, 30, "expected a property in '', found 'é = 1)'"),
        ),
        ("CREATE TABLE t (a INT) WITH ()", (1, 30, "expected a property in '', found ')'")),
        ("CREATE TABLE t (a INT) WITH ('x' = 'y')", (1, 30, "WITH ('x') is not supported")),
        ("CREATE VIEW v AS SELECT 1", (1, 1, "CREATE VIEW is not accepted")),
        ("CREATE FUNCTION f", (1, 1, "CREATE FUNCTION is not accepted: functions")),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", (1, 42, "PRIMARY KEY stands")),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", (1, 37, "no column 'b' stands before it")),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a, A))", (1, 40, "column 'A' stands twice")),
        ("CREATE TABLE t (a INT, A INT)", (1, 24, "column 'A' stands twice")),
        ("CREATE TABLE t (a INT", (1, 22, "expected a comma or ')', found the end of the text")),
        ("CREATE TABLE t (a INT,", (1, 23, "expected a column name, found the end of the text")),
        ("CREATE TABLE t", (1, 15, "expected '(', found the end of the text")),
        ("CREATE TABLE", (1, 13, "expected the name of a table, found the end of the text")),
        ("CREATE TABLE t (a INT); CREATE TABLE u (a INT)", (1, 25, "expected the end of the text")),
        ("CREATE TABLE t (a INT) b", (1, 24, "expected the end of the table, found 'b'")),
        ("CREATE TABLE t (a INT b)", (1, 23, "expected a comma or ')', found 'b)'")),
        ("CREATE TABLE t ('a' INT)", (1, 17, "expected a column name, found")),
        ('CREATE TABLE t ("a`b" INT)', (1, 17, "a name has no backtick")),
        ("CREATE TABLE t (a DECIMAL(²))", (1, 27, "expected a number")),
        ("CREATE TABLE t (a DECIMAL(٣))", (1, 27, "expected a number")),
        ("CREATE TABLE t (1 INT)", (1, 17, "expected a column name, found '1'")),
        ("CREATE TABLE t (數 INT)", (1, 17, "expected a column name")),
        ("CREATE TABLE t (a INT NULL NOT NULL)", (1, 17, "column 'a' is NULL and NOT NULL")),
        ("CREATE TABLE t (a INT NULL PRIMARY KEY)", (1, 17, "column 'a' is NULL and NOT NULL")),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name_and_place(
    sql: str, seen: tuple[int, int, str]
) -> None:
    with pytest.raises(UserError) as caught:
        parse_table(sql)
    (problem,) = caught.value.problems
    line, column, message = seen
    assert (problem.line, problem.column) == (line, column)
    assert message in problem.message


def test_in_a_manifest_the_place_is_that_in_the_manifest() -> None:
    problem = problem_of(manifest("CREATE TABLE price (\n  a INT,\n  b SMALLINT\n)"))
    assert (problem.line, problem.column, problem.path) == (9, 11, "inputs.0.schema")
    assert "did you mean INT?" in problem.hint


def test_an_input_has_the_name_and_the_key_of_its_table() -> None:
    other = problem_of(manifest("CREATE TABLE prices (a INT)"))
    assert "the input is called price, and its table prices" in other.message
    keyed = problem_of(manifest("CREATE TABLE price (a INT PRIMARY KEY, b INT)", "    key: b\n"))
    assert "key is b, and the PRIMARY KEY a" in keyed.message


def test_a_list_of_columns_is_no_table() -> None:
    assert not is_table("creates INT, b INT")
    assert is_table(PRICE)


def test_types_nest_no_deeper_in_a_table() -> None:
    with pytest.raises(UserError, match="nest deeper"):
        parse_table(f"CREATE TABLE t (a {'ARRAY<' * 20}INT{'>' * 20})")
    with pytest.raises(UserError, match="expected a comma"):
        parse_table(f"CREATE TABLE t (a INT{' ARRAY' * 2_000})")


def test_a_file_has_many_tables_and_each_has_a_name_of_its_own() -> None:
    tables = parse_tables(f"{PRICE}\nCREATE TABLE Part (id INT PRIMARY KEY) -- the last")
    assert [(table.name, table.keys) for table in tables] == [("price", ()), ("Part", ("id",))]
    assert tables[0].sql == PRICE[PRICE.index("CREATE") :].strip()
    with pytest.raises(UserError, match="table 'PRICE' stands twice"):
        parse_tables(f"{PRICE}CREATE TABLE PRICE (a INT)")
    with pytest.raises(UserError, match="no input can be called 'my table'"):
        parse_tables('CREATE TABLE "my table" (a INT)')
    with pytest.raises(UserError, match="expected CREATE, found the end of the text"):
        parse_tables("-- nothing")


@pytest.mark.parametrize(
    "text", ["-" * 60_000 + "\nx", "/**/" * 15_000 + "x", " " * 60_000 + "x", "--\n" * 20_000]
)
def test_comments_cost_no_time(text: str) -> None:
    assert not is_table(text)
    assert is_table(f"{text[:-1]}\nCREATE/* */TABLE t (a INT)")


def test_a_column_may_be_called_create() -> None:
    assert input_of("create TIMESTAMP, b INT").columns.strip() == "create TIMESTAMP, b INT"
    table = "CREATE TABLE price (create TIMESTAMP, b INT)"
    assert input_of(table).columns == "create TIMESTAMP, b INT"


def test_a_mistake_behind_many_comments_is_the_one_that_is_told() -> None:
    comments = "-- a comment that is long\n" * 1_000
    problem = problem_of(manifest(f"CREATE TABLE price (\n{comments}a SMALLINT)"))
    assert problem.message == "unknown type SMALLINT"


def test_columns_beyond_all_bounds_are_refused() -> None:
    columns = ", ".join(f"column_{number} BIGINT" for number in range(2_000))
    assert "more than 20000 characters" in problem_of(manifest(columns)).message


DOCUMENTED = """\
CREATE TABLE price (
part BIGINT NOT NULL,
vendor BIGINT NOT NULL,
price DECIMAL
) WITH ('connectors' = '[{
"name": "tutorial-price-s3",
"transport": {
"name": "url_input",
"config": {
"path": "https://files.example/price.json"
}
},
"format": {
"name": "json"
}
}]');
"""


def test_connectors_of_a_table_keep_their_names() -> None:
    (found,) = input_of(DOCUMENTED).connectors
    assert (found.name, found.url) == ("tutorial-price-s3", "https://files.example/price.json")
    assert (found.format, found.update_format) == ("json", "insert_delete")
    nameless = DOCUMENTED.replace('"name": "tutorial-price-s3",', "")
    assert input_of(nameless).connectors[0].name == "unnamed-0"


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("url_input", "kafka_input", "transport 'kafka_input' is not accepted"),
        ("url_input", "s3_input", "url: s3://BUCKET/KEY, connection: NAME"),
        ('"url_input"', "[]", "transport [] is not supported"),
        ('"path"', '"paths"', "'paths' is not supported"),
        ('"https://files.example/price.json"', "7", "`path` of its transport is missing, or no"),
        ("https:", "ftp:", "a URL begins with one of"),
        ("https://", "https://me:secret@", "a URL has no user and no password"),
        ('"json"', '"parquet"', "format 'parquet' is not accepted"),
        ('"json"', '"json", "config": {"array": "x"}', "`array` is true or false"),
        ('"json"', '"csv", "config": {"headers": "true"}', "`headers` is true or false"),
        ('"json"', '"json", "name": "csv"', "'name' stands twice in one object"),
        ("tutorial-price-s3", "\\ud800", "connector '\\ud800', name"),
        ("}]", "}", "connectors are no JSON"),
        ("[{", "{", "connectors are no JSON"),
        ("}]'", "}]', 'x' = 'y'", "WITH ('x') is not supported"),
        ("}]'", "}]', 'connectors' = '[]'", "WITH ('connectors') stands twice"),
    ],
)
def test_what_is_wrong_with_connectors_is_told(old: str, new: str, seen: str) -> None:
    assert old in DOCUMENTED
    problem = problem_of(manifest(DOCUMENTED.replace(old, new, 1)))
    assert seen in problem.message
    assert problem.path == "inputs.0.schema"
    problem.message.encode()


def test_what_has_no_effect_in_a_table_is_a_warning() -> None:
    materialized = DOCUMENTED.replace("}]'", "}]', 'materialized' = 'true'")
    found = read_manifest(manifest(materialized)).model
    assert [each.name for each in found.inputs[0].connectors] == ["tutorial-price-s3"]
    (warning,) = found.warnings()
    assert warning.startswith("input price: WITH ('materialized') has no effect: ")
    assert read_manifest(manifest(DOCUMENTED)).model.warnings() == ()


def test_without_names_the_same_file_stands_once() -> None:
    declared = '    connectors: [{url: "https://x/y"}, {url: "https://x/y"}]\n'
    problem = problem_of(manifest("a INT", declared))
    assert (problem.message, problem.path) == (
        "https://x/y stands twice",
        "inputs.0.connectors.1.url",
    )
