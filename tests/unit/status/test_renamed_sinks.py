"""Tokens, questions and histories name sinks and stages as they are called, or were."""

from dataclasses import replace

import pytest

from unit.status.slots import (
    ENRICH,
    LOAD,
    burying,
    claim,
    dead,
    slot,
    span,
    stages,
    view,
    with_stages,
)
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.former_names import all_names
from waybill_shared.contract.slots import Slot
from waybill_shared.contract.token_views import TokenView
from waybill_shared.contract.topology import sinks_in
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.dead_letters import dead_records_of
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import Judgement


def renamed() -> tuple[StageDefinition, ...]:
    """`enrich` is called `polish`, and the sink `lake` of `load` is `pond`."""
    enrich, load = stages(0, 0)
    pond = replace(load.sinks[0], name="pond", was=("lake",))
    return replace(enrich, name="polish", was=("enrich",)), replace(load, sinks=(pond,))


RENAMED = with_stages(slot(enriched=(9,), copy=(9,), lake=(3,)), *renamed(), generation=2)


def judged(content: Slot, *sinks: str, names: tuple[StageDefinition, ...] = ()) -> Judgement:
    asked = claim(span(0, 5))
    known = all_names(sinks, sinks_in(names))
    return judge(replace(asked, asked=TokenView(sinks=sinks), names=known), view(content))


@pytest.mark.parametrize("name", ["lake", "pond"])
def test_sink_is_asked_for_by_each_of_its_names(name: str) -> None:
    found = judged(RENAMED, name)
    assert (found.kind, found.named) == (OutcomeKind.IN_PROGRESS, frozenset((name,)))
    done = with_stages(slot(lake=(5,)), *renamed(), generation=2)
    assert judged(done, name).kind == OutcomeKind.COMPLETE


def test_name_that_the_record_has_and_the_slot_has_not_yet_is_known() -> None:
    """The rename was reported as done, and the definition is on its way to the slot."""
    found = judged(slot(lake=(5,)), "pond", names=renamed())
    assert (found.kind, found.named) == (OutcomeKind.COMPLETE, frozenset(("pond",)))


def test_answers_show_present_names() -> None:
    found = judged(RENAMED)
    assert [(stage.name, [sink.name for sink in stage.sinks]) for stage in found.stages] == [
        ("polish", ["enriched", "copy"]),
        ("load", ["pond"]),
    ]
    assert [sink.key for stage in found.stages for sink in stage.sinks][0::2] == [ENRICH, LOAD]


def test_sink_that_was_removed_after_a_rename_is_asked_for_by_each_name() -> None:
    polish, load = renamed()
    gone = with_stages(RENAMED, polish, gone={3: (load,)})
    for name in ("lake", "pond"):
        assert judged(gone, name).kind == OutcomeKind.LOST


def test_dead_letters_of_before_have_present_names() -> None:
    entries = (dead(1), dead(2, sink=LOAD, stage="load@1"))
    found = judged(burying(RENAMED, *entries))
    shown = dead_records_of(found.dead_asked, entries, cut=False).found
    assert [(each.stage, each.sink) for each in shown] == [("polish", None), ("load", "pond")]
