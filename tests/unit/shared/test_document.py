"""A document knows where its parts are in a text, whatever that is written in."""

import pytest

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.document import Document, Path, paths_of
from waybill_shared.contract.manifest.reading import read_manifest

SOURCE = "a:\n  - |\n    one\n    two\n"
DOCUMENT = Document(
    tree={"a": ["one\ntwo\n"]}, marks={(): (1, 1), ("a",): (1, 1), ("a", 0): (2, 5)}, source=SOURCE
)


@pytest.mark.parametrize(
    ("path", "place"), [(("a", 0), (2, 5)), (("a", 7), (1, 1)), (("b", "c"), (1, 1))]
)
def test_problem_has_the_place_of_the_deepest_part_that_exists(
    path: Path, place: tuple[int, int]
) -> None:
    problem = DOCUMENT.place(Problem(message="wrong", hint="mend it"), path)
    assert (problem.line, problem.column) == place
    assert problem.path == ".".join(map(str, path))


def test_problem_in_a_text_has_its_place_in_the_document() -> None:
    problem = DOCUMENT.place(Problem(message="wrong", line=2, column=3), ("a", 0))
    assert problem == Problem(message="wrong", line=4, column=7, path="a.0")


def test_place_that_is_not_in_the_document_is_named_next_to_that_of_the_text() -> None:
    problem = DOCUMENT.place(Problem(message="wrong", line=9, column=8), ("a", 0))
    message = "wrong (line 9, column 8 of that text)"
    assert problem == Problem(message=message, line=2, column=5, path="a.0")


def test_a_manifest_carries_the_place_of_each_part() -> None:
    text = (
        "name: a\nversion: 1\n"
        "inputs: [{name: i, kafka: {topic: t}, schema: a INT}]\n"
        "stages: [{name: s, inputs: [i], sinks: [{name: o, kafka: {topic: u}}]}]\n"
    )
    applied = read_manifest(text)
    paths = [*paths_of(applied.model.model_dump(include={"name", "version"}))]
    assert paths == [(), ("name",), ("version",)]
    (problem,) = applied.place([Problem(message="wrong", path="stages.s.sinks.o.kafka.topic")])
    assert (problem.line, problem.column) == (4, text.splitlines()[3].index("u}") + 1)
    assert problem.path == "stages.0.sinks.0.kafka.topic"


def test_who_does_not_know_the_text_gets_no_places() -> None:
    document = Document(tree=DOCUMENT.tree, marks={}, source=SOURCE)
    problem = document.place(Problem(message="wrong", line=2, column=3), ("a", 0))
    message = "wrong (line 2, column 3 of that text)"
    assert problem == Problem(message=message, path="a.0")
