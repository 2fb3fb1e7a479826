"""Writes console/meanings.js: what the words of answers mean, and the sentences of outcomes."""

import json
from collections.abc import Mapping
from typing import Final

from waybill_shared.contract import run_words, words
from waybill_shared.contract.commands import STOP_MODES, StopRow
from waybill_shared.contract.lifecycle import PHASES, STOPS, Phase
from waybill_shared.contract.sentences import Sentence
from waybill_shared.contract.word import Word

INTRODUCTION: Final = """\
/**
 * What the words of answers mean, and the sentences about outcomes.
 * Made by `python -m waybill_shared.tools.console_words > console/meanings.js`, from `words`,
 * `run_words`, `commands`, `lifecycle` and `sentences` of `waybill_shared.contract`: change these.
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
    "ENDS": run_words.RunEnd,
    "DEGRADED": run_words.DegradedCause,
}
"""By the name that the console has for them."""


def render() -> str:
    tables = {name: {str(each): each.plain for each in kind} for name, kind in WORDS.items()}
    tables["STOPS"] = {mode: _describe(row) for mode, row in STOP_MODES.items()}
    ending = {str(phase): PHASES[phase].meaning for phase in Phase if phase in STOPS}
    tables["ENDING_PHASES"] = ending
    tables["SENTENCES"] = {each.name.lower(): each.value for each in Sentence}
    return INTRODUCTION + "".join(_table(name, table) for name, table in tables.items())


def _describe(row: StopRow) -> str:
    """Return what a stop does, and when it becomes a stronger one."""
    after = f"after {row.limit_ms // 1000} s (or as the operator says) it ends as {row.then} does"
    return f"{row.meaning}; {after}" if row.asks_driver else row.meaning


def _table(name: str, table: Mapping[str, str]) -> str:
    rows = "".join(f"\t{word}: {json.dumps(text)},\n" for word, text in table.items())
    return f"\n/** @type {{Record<string, string>}} */\nexport const {name} = {{\n{rows}}};\n"


if __name__ == "__main__":
    print(render(), end="")
