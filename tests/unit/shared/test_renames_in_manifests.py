"""What a manifest alone shows to be wrong with earlier names."""

import pytest

from unit.stage_runner.fakes import EXAMPLE
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.reading import read_manifest

ENRICH, LOAD = "name: enrich\n", "name: load\n"


@pytest.mark.parametrize(
    ("enrich", "load", "message", "hint"),
    [
        ("enrich", None, "stage 'enrich' is called so", "take `was` out"),
        ("load", None, "stage 'load' still exists next to 'enrich'", "remove 'load'"),
        ("load", "enrich", "stage 'enrich' was 'load', in a circle", "choose a new name"),
        ("old", "old", "stage 'enrich' says already that it was 'old'", "the other one is new"),
    ],
)
def test_stage_that_was_another_one_or_two(
    enrich: str | None, load: str | None, message: str, hint: str
) -> None:
    text = EXAMPLE
    for line, was in ((ENRICH, enrich), (LOAD, load)):
        if was is not None:
            text = text.replace(line, f"{line}    was: {was}\n")
    with pytest.raises(UserError) as raised:
        read_manifest(text)
    problem = raised.value.problems[0]
    assert message in problem.message
    assert hint in problem.hint
    assert problem.path is not None
    assert problem.path.endswith(".was")


def test_sinks_of_all_stages_are_compared() -> None:
    text = EXAMPLE.replace("{name: lake,", "{name: lake, was: enriched_topic,")
    with pytest.raises(UserError, match="sink 'enriched_topic' still exists next to 'lake'"):
        read_manifest(text)


def test_was_needs_no_other_line() -> None:
    read_manifest(EXAMPLE.replace(ENRICH, "name: polish\n    was: enrich\n"))
