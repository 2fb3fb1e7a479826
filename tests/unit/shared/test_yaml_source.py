"""YAML is read with care: what could expand or hide is refused with its place."""

import pytest

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.yaml_source import SIZE_BYTES_MAX, read_yaml

TEXT = """\
name: orders
inputs:
  - name: a
    kafka: {topic: t, partitions: 4}
"""


def refused(text: str) -> Problem:
    with pytest.raises(UserError) as raised:
        read_yaml(text)
    (problem,) = raised.value.problems
    return problem


def test_value_is_read() -> None:
    assert read_yaml(TEXT).tree == {
        "name": "orders",
        "inputs": [{"name": "a", "kafka": {"topic": "t", "partitions": 4}}],
    }


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("name",), (1, 7)),
        (("inputs",), (2, 1)),
        (("inputs", 0, "name"), (3, 11)),
        (("inputs", 0, "kafka", "partitions"), (4, 35)),
        (("inputs", 0, "kafka", "missing"), (4, 5)),
        (("inputs", 7, "name"), (2, 1)),
        (("nothing", "here"), (1, 1)),
    ],
)
def test_place_is_that_of_the_deepest_part_that_is_there(
    path: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    problem = read_yaml(TEXT).place(Problem(message="wrong"), path)
    assert (problem.line, problem.column) == place
    assert problem.path == ".".join(map(str, path))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("sql: SELECT a FROM b\n", (1, 13)),
        ("sql: 'SELECT a FROM b'\n", (1, 14)),
        ('steps: [{name: SELECT, sql: "SELECT a FROM b"}]\n', (1, 37)),
        ("sql: |\n  SELECT a FROM b\n", (2, 10)),
        ("sql: |-  # of one line\n\n\n    SELECT a FROM b\n", (4, 12)),
        ("sql:\n  SELECT a FROM b\n", (2, 10)),
    ],
)
def test_place_in_a_text_is_that_in_the_document(text: str, place: tuple[int, int]) -> None:
    document = read_yaml(text)
    steps = document.tree.get("steps")
    path: tuple[str | int, ...] = ("steps", 0, "sql") if steps else ("sql",)
    value = steps[0]["sql"] if steps else document.tree["sql"]
    line = value[: value.index("a FROM")].count("\n") + 1
    problem = document.place(Problem(message="wrong", line=line, column=8), path)
    assert (problem.line, problem.column, problem.message) == (*place, "wrong")


def test_later_line_of_a_text_has_its_own_place() -> None:
    document = read_yaml("a: 1\nsql: |\n  SELECT x\n  FROM x\n")
    problem = document.place(Problem(message="wrong", line=2, column=6), ("sql",))
    assert (problem.line, problem.column) == (4, 8)


def test_the_end_of_a_text_has_a_place_behind_its_last_line() -> None:
    """A query that ends too early is found wrong there."""
    document = read_yaml("a: 1\nsql: |\n  SELECT x\n  FROM\nb: 2\n")
    problem = document.place(Problem(message="wrong", line=3, column=1), ("sql",))
    assert (problem.line, problem.column) == (5, 1)
    problem = document.place(Problem(message="wrong", line=4, column=1), ("sql",))
    assert problem.message == "wrong (line 4, column 1 of that text)"


@pytest.mark.parametrize("text", ["sql: >\n  SELECT x\n  FROM x\n", 'sql: "SELECT\\tx"\n'])
def test_place_in_a_text_that_is_written_otherwise_is_told_beside_its_own(text: str) -> None:
    problem = read_yaml(text).place(Problem(message="wrong", line=1, column=8), ("sql",))
    assert (problem.line, problem.column) == (1, 6)
    assert problem.message == "wrong (line 1, column 8 of that text)"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: &x 1\n", (1, 4)),
        ("a: 1\nb: *x\n", (2, 4)),
        ("a: !!int 1\n", (1, 4)),
        ("a: !python/object:os.system {}\n", (1, 4)),
        ("a:\n  <<: {b: 1}\n", (2, 3)),
        ("a: &x [1]\nb: *x\n", (1, 4)),
    ],
)
def test_what_expands_is_refused(text: str, place: tuple[int, int]) -> None:
    problem = refused(text)
    assert (problem.line, problem.column) == place
    assert "write the value out" in problem.message


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f", "\ufffe"])
def test_character_of_control_is_refused_with_its_place(character: str) -> None:
    problem = refused(f"a: 1\nb: x{character}y\n")
    assert problem.message == f"not YAML: the character U+{ord(character):04X} is not allowed"
    assert (problem.line, problem.column) == (2, 5)


def test_large_document_is_refused_before_it_is_parsed() -> None:
    assert refused("{" * (SIZE_BYTES_MAX + 1)).message == "the document is larger than 65536 bytes"


def test_deep_document_is_refused() -> None:
    assert refused("a: " + "[" * 40 + "]" * 40).message == "the document nests deeper than 32"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the document is empty"),
        ("null", "the document is empty"),
        ("just text", "the document has no keys with values"),
        ("- a list", "the document has no keys with values"),
        ("7", "the document has no keys with values"),
    ],
)
def test_document_is_a_mapping(text: str, message: str) -> None:
    assert refused(text).message == message


@pytest.mark.parametrize(
    ("text", "line"), [("a: [1\n", 1), ("a: 1\n\tb: 2\n", 2), ("a: 1\na: 2\n", 2), ("a: 'b\n", 1)]
)
def test_broken_yaml_has_its_line(text: str, line: int) -> None:
    problem = refused(text)
    assert problem.message.startswith("not YAML: ")
    assert problem.line == line


def test_several_documents_are_refused() -> None:
    assert refused("a: 1\n---\nb: 2\n").message.startswith("not YAML: ")


@pytest.mark.parametrize("text", ["a: {[{b: 1}]: 2}", "? {a: {b: 1}}\n: 2\n"])
def test_a_key_that_is_a_mapping_is_a_problem_and_no_fault_of_ours(text: str) -> None:
    with pytest.raises(UserError, match="a key is itself a mapping"):
        read_yaml(text)
