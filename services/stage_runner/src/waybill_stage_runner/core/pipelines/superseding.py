"""Explains to whoever sent a command what became of it, when a later one supersedes it. Pure."""

from typing import Final

from waybill_shared.contract.commands import Rename, Rescale, Restart, Start, Stop, begins_elsewhere
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.words import Action
from waybill_stage_runner.core.pipelines.putting import puts_dead_letter
from waybill_stage_runner.core.pipelines.removal import sinks_to_remove
from waybill_stage_runner.core.pipelines.states import PipelineState

PUT_LATER: Final = "it is recorded all the same: the next start puts the record there"
NOTED: Final = "where it begins is recorded all the same: the next start does it"


def asks_for_same(earlier: Command, later: Command) -> bool:
    """Return True if both are stops in the same mode, rescales to the same number, renames to
    the same name, put dead letters, or start single stages: the later one supersedes nothing then.
    """
    if puts_dead_letter(earlier) and puts_dead_letter(later):
        return earlier.id != later.id
    if _starts_stage(earlier) and _starts_stage(later):
        return earlier.id != later.id
    joins = isinstance(earlier.body, Rename | Rescale | Stop) and earlier.id != later.id
    return joins and earlier.body == later.body


def _starts_stage(command: Command) -> bool:
    return isinstance(command.body, Start) and command.body.stage is not None


def problem_of_superseded(state: PipelineState, command: Command, by: PipelineRecord) -> Problem:
    """Return the problem of a superseded command.

    If the change of the command was written already, the hint says so: it stays in force, even if
    it never ran. So do rewinds.
    """
    hint = ""
    if state.next is None and command.action in (Action.APPLY, Action.RENAME):
        hint = _became(state.record, by)
    elif isinstance(command.body, Restart) and begins_elsewhere(command.body):
        hint = NOTED if state.next is None and by.rewinds else ""
    elif puts_dead_letter(command) and any(each.command == command.id for each in by.dead_letters):
        hint = PUT_LATER
    return Problem(message=f"superseded by a later {by.desired} command", hint=hint)


def _became(before: PipelineRecord, by: PipelineRecord) -> str:
    """Explain what became of the change that made `before`, now that a later command makes `by`."""
    old, new = before.generation, by.generation
    if new == old:
        return f"its change is in force: generation {old}"
    if sinks_to_remove(before, by) is None:
        return f"its change was generation {old}; generation {new} is in force now"
    later = f"generation {new} follows when what it removes is closed"
    return f"its change is in force: generation {old}; {later}"
