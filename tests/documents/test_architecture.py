"""ARCHITECTURE.md leads from what somebody wants to change to the file that decides it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("|")]
ROW_CHARACTERS_MAX = 200
CHANGES = {
    "such as MySQL": ("waybill_shared.contract.manifest.sinks", "KINDS"),
    "a reason of `lost`": ("waybill_shared.contract.words", "LossReason"),
    "a retry time of webhooks": ("waybill_status.core.watches.deliveries", "FIRST_PAUSE_MS"),
    "a limit of pipelines": ("waybill_ingress.app.commands", "Commands"),
    "an input format": ("waybill_shared.contract.manifest.formats", "FORMATS"),
    "a stop mode": ("waybill_shared.contract.commands", "STOP_MODES"),
    "names who acted": ("waybill_shared.contract.callers", "Caller"),
    "how long tokens": ("waybill_shared.contract.token_life", "TOKEN_LIFE_DAYS"),
    "a new question": ("waybill_shared.contract.commands", "COMMANDS"),
    "an endpoint of status": ("waybill_shared.contract.routes", "ROUTES"),
}
"""What somebody wants to change, as its row says it: the module, and what decides it there."""


@pytest.mark.parametrize(("change", "decided"), CHANGES.items(), ids=CHANGES)
def test_a_change_leads_straight_to_its_file(change: str, decided: tuple[str, str]) -> None:
    module, name = decided
    (row,) = (row for row in ROWS if change in row.split("|")[1])

    assert f"`{module}" in row
    assert name in _names_in(module)


def test_no_row_is_long() -> None:
    assert [row for row in ROWS if len(row) > ROW_CHARACTERS_MAX] == []


def _names_in(module: str) -> set[str]:
    file = f"src/{module.replace('.', '/')}.py"
    (path,) = [*ROOT.glob(f"*/{file}"), *ROOT.glob(f"services/*/{file}")]
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names
