"""Writes console/meanings.js: what the words of an outcome mean, and the sentences about it."""

import json
from collections.abc import Mapping
from typing import Final

from waybill_shared.contract import words
from waybill_shared.contract.sentences import Sentence
from waybill_shared.contract.word import Word

INTRODUCTION: Final = """\
/**
 * What the words of an outcome mean, and the sentences about it.
 * Made by `python -m waybill_shared.tools.console_words > console/meanings.js`, from
 * `waybill_shared.contract.words` and `waybill_shared.contract.sentences`: change these.
 */
"""
WORDS: Final[Mapping[str, type[Word]]] = {
    "OUTCOMES": words.OutcomeKind,
    "UNKNOWN": words.UnknownReason,
    "DEATHS": words.DeadReason,
    "LOSSES": words.LossReason,
    "OBSTACLES": words.Obstacle,
    "IN_STAGE": words.StateInStage,
    "IN_SINK": words.StateInSink,
    "BATCHES": words.BatchDetail,
    "OFTEN": words.Guarantee,
}
"""By the name that the console has for them."""


def render() -> str:
    tables = {name: {str(each): each.plain for each in kind} for name, kind in WORDS.items()}
    tables["SENTENCES"] = {each.name.lower(): each.value for each in Sentence}
    return INTRODUCTION + "".join(_table(name, table) for name, table in tables.items())


def _table(name: str, table: Mapping[str, str]) -> str:
    rows = "".join(f"\t{word}: {json.dumps(text)},\n" for word, text in table.items())
    return f"\n/** @type {{Record<string, string>}} */\nexport const {name} = {{\n{rows}}};\n"


if __name__ == "__main__":
    print(render(), end="")
