"""What is said of the columns that a table gets."""

import pytest

from waybill_spark.sinks.altering import describe_new, new_names


@pytest.mark.parametrize(
    ("added", "gone", "found"),
    [
        ({"client": "text"}, {"customer": "text"}, {"client": "customer"}),
        ({"client": "text", "tax": "real"}, {"customer": "text"}, {"client": "customer"}),
        ({"client": "text"}, {"customer": "bigint"}, {}),
        ({"client": "text"}, {"customer": "text", "site": "text"}, {}),
        ({"client": "text"}, {}, {}),
    ],
)
def test_one_column_that_goes_may_be_the_one_of_its_type_that_comes(
    added: dict[str, str], gone: dict[str, str], found: dict[str, str]
) -> None:
    assert new_names(added, gone) == found


def test_each_column_is_named_with_the_statement_that_would_make_it_another() -> None:
    added = {"tax": "real", "client": "text"}
    assert [*describe_new(added, {"client": "RENAME …"})] == [
        "gets a column tax, real",
        "gets a column client, text; if it is another under a new name, first run RENAME …",
    ]
