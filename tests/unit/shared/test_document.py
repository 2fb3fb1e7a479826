"""A document asks its own places where a problem stands, whatever its text is written in."""

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.document import Document, Mark, Path


class Columns:
    """A text in which the deeper a part is, the farther right it stands, and all on one line."""

    def find(self, path: Path) -> Mark:
        return 7, len(path)

    def find_inside(self, path: Path, line: int, column: int) -> Mark | None:
        return None if column > 80 else (7 + line, len(path) + column)


DOCUMENT = Document(tree={"a": ["text"]}, places=Columns())


def test_problem_has_the_place_of_its_part() -> None:
    problem = DOCUMENT.place(Problem(message="wrong", hint="mend it"), ("a", 0))
    assert problem == Problem(message="wrong", hint="mend it", line=7, column=2, path="a.0")


def test_problem_in_a_text_has_its_place_in_the_document() -> None:
    problem = DOCUMENT.place(Problem(message="wrong", line=3, column=4), ("a", 0))
    assert problem == Problem(message="wrong", line=10, column=6, path="a.0")


def test_place_that_is_not_in_the_document_is_told_beside_that_of_the_text() -> None:
    problem = DOCUMENT.place(Problem(message="wrong", line=3, column=81), ("a", 0))
    message = "wrong (line 3, column 81 of that text)"
    assert problem == Problem(message=message, line=7, column=2, path="a.0")
