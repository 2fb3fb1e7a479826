"""The words of Waybill: their page, who says them, and those that the SDK keeps for itself."""

import ast
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

import waybill
from waybill.cli.keys import KeyScope
from waybill.cli.phases import PipelinePhase
from waybill.cli.render import STYLE_BY_WORD
from waybill.outcomes import FINAL_KINDS
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.manifest import sinks
from waybill_shared.contract.routes import Scope
from waybill_shared.contract.word import Word
from waybill_shared.contract.words import (
    Action,
    ConnectorState,
    Obstacle,
    OperationState,
    OutcomeKind,
    StateInSink,
    StateInStage,
)
from waybill_shared.tools import console_words
from waybill_shared.tools.words_page import render
from waybill_status.core.outcomes.judgements import FINAL
from waybill_status.core.pipelines.stuck import OBSTACLES

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "shared/src/waybill_shared/contract"
HERE = {CONTRACT / "words.py", CONTRACT / "run_words.py"}
KINDS = Word.__subclasses__()
SLUGS = {"topic_recreated"}  # also what ingress calls a problem
NAMED = {word for kind in KINDS for word in kind if "_" in word} - SLUGS
"""Words that mean nothing else wherever they stand."""
CALLED = {Action.VALIDATE: "check"}
"""By the SDK, otherwise than over HTTP."""
SAYING = ("outcome.js", "token-part.js", "view-token.js", "waterfall.js")
"""Modules of the console that show an outcome."""
OF_OUTCOMES = re.compile(
    r"\b(accepted|visible|committed|arrived|complete|lost|dead|died|dropped|to come|once)\b"
)
FILLED = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")  # what a template is filled with
LITERAL = re.compile(r"""(?<![\w`])("[^"\n]*"|`[^`]*`)""")
COMPARED: Mapping[str, Set[str]] = {
    "action": set(Action),
    "blocked_by": set(Obstacle),
    "kind": {*OutcomeKind, *sinks.KINDS},
    "phase": set(Phase),
    "state": {*OperationState, *StateInSink, *StateInStage, *ConnectorState},
}


def test_the_page_shows_the_words_as_they_are() -> None:
    same = (ROOT / "docs/words.md").read_text(encoding="utf-8") == render()

    assert same, "run `.venv/bin/python -m waybill_shared.tools.words_page > docs/words.md`"


@pytest.mark.parametrize("kind", OutcomeKind)
def test_the_readme_explains_the_outcomes_as_the_page_does(kind: OutcomeKind) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert f"| `{kind}` | {kind.meaning} |" in readme


def test_the_console_has_the_words_as_they_are() -> None:
    same = (ROOT / "console/meanings.js").read_text(encoding="utf-8") == console_words.render()

    assert same, (
        "run `.venv/bin/python -m waybill_shared.tools.console_words > console/meanings.js`"
    )


@pytest.mark.parametrize("words", console_words.WORDS.values())
def test_the_console_says_nothing_of_members_of_an_answer(words: type[Word]) -> None:
    assert [word.plain for word in words if "`" in word.plain or not word.plain] == []


@pytest.mark.parametrize("name", SAYING)
def test_the_console_has_no_sentence_of_its_own_for_an_outcome(name: str) -> None:
    source = (ROOT / "console" / name).read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)
    literals = [found[1] for found in LITERAL.finditer(FILLED.sub("", code))]
    assert literals

    own = [each for each in literals if " " in each and OF_OUTCOMES.search(each)]
    assert own == [], "take it from waybill_shared.contract.sentences"


@pytest.mark.parametrize("words", KINDS)
def test_every_word_has_a_meaning_of_its_own(words: type[Word]) -> None:
    assert len(words.__members__) == len(words), "two words are one"
    assert all(word.meaning and "|" not in word.meaning for word in words)


@pytest.mark.parametrize("folder", ["services", "spark", "shared", "infra"])
def test_no_word_is_spelled_out_in_the_product(folder: str) -> None:
    sources = [path for path in sorted((ROOT / folder).rglob("*.py")) if path not in HERE]
    assert sources

    spelled = [
        f"{source.relative_to(ROOT)}:{node.lineno}: {node.value!r}"
        for source in sources
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if NAMED & set(re.split(r"[ :|]+", node.value))
    ]

    assert not spelled, "take it from waybill_shared.contract.words"


def test_the_sdk_knows_every_outcome_and_which_are_final() -> None:
    assert {str(kind) for kind in waybill.OutcomeKind} == {str(kind) for kind in OutcomeKind}
    assert {str(kind) for kind in FINAL_KINDS} == {str(kind) for kind in FINAL}


@pytest.mark.parametrize("client", [waybill.Client, waybill.AsyncClient])
def test_the_sdk_can_do_what_people_want_of_a_pipeline(client: type) -> None:
    called = {action: CALLED.get(action, str(action)) for action in Action}
    assert [name for name in called.values() if not hasattr(client, name)] == []


def test_the_sdk_compares_with_words_that_there_are() -> None:
    compared = list(_compared_in_the_sdk())
    assert {attribute for attribute, _ in compared} >= {"action", "phase", "state"}

    assert [each for each in compared if each[1] not in COMPARED[each[0]]] == []


def test_obstacles_that_are_explained_are_there_and_the_command_colours_every_end() -> None:
    assert set(OBSTACLES) <= set(Obstacle)
    assert {*OutcomeKind, *OperationState} <= set(STYLE_BY_WORD)


def test_the_command_takes_every_phase_and_every_scope() -> None:
    assert set(map(str, PipelinePhase)) == set(map(str, Phase))
    assert set(map(str, KeyScope)) == set(map(str, Scope))


def test_alerts_and_dashboards_ask_for_outcomes_that_there_are() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "infra").rglob("*.[yj][as]*")]
    asked = {word for text in texts for word in re.findall(r'outcome=\\?"(\w+)', text)}

    assert asked
    assert asked <= set(OutcomeKind)


def _compared_in_the_sdk() -> Iterator[tuple[str, str]]:
    """As in `operation.state == "done"` and `pipeline.phase in {"Starting", "Running"}`."""
    for source in sorted((ROOT / "client/src/waybill").rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute):
                words = [
                    each.value
                    for right in node.comparators
                    for each in ast.walk(right)
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ]
                yield from ((node.left.attr, word) for word in words if node.left.attr in COMPARED)
