"""Stages in layers, each read by several of the next: ways multiply, and each stage counts once."""

from collections.abc import Iterable
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import patiently
from unit.token_tracker.flow import Flow, Recreate, Skip, StageShape, Take
from unit.token_tracker.flow_events import recreations, skips, takes
from unit.token_tracker.test_reached_properties import EMPTY, state_of
from waybill_shared.contract.events import Fact, StageDefinition
from waybill_shared.contract.slots import Losses, Slot
from waybill_shared.contract.topology import StageSink
from waybill_shared.contract.vectors import Vector
from waybill_token_tracker.core.facts import apply_fact
from waybill_token_tracker.core.graph import Graph, _combine, _Path, within
from waybill_token_tracker.core.losses import _Settling, unite


def layers(count: int) -> tuple[StageShape, ...]:
    """Two stages per layer; each reads both topics of the layer before."""
    before: tuple[str, ...] = ("R",)
    stages: list[StageShape] = []
    for number in range(count):
        pair = (f"A{number}", f"B{number}")
        stages += [StageShape(f"to_{topic}", before, (topic,)) for topic in pair]
        before = pair
    return (*stages, StageShape("load", before))


def plain_roots(graph: Graph, stage: StageDefinition, at: Vector) -> _Path:
    """Way by way."""
    paths: list[_Path] = []
    for source in stage.inputs:
        here, writers = within(at, source), graph.writers(source)
        if not writers:
            paths.append(_Path(source.ids, here))
        paths += [plain_roots(graph, w.stage, graph.through(w, source, here)) for w in writers]
    return _combine(paths)


def plain_spread(settling: _Settling, sink: StageSink, set_aside: Losses) -> Losses:
    """Way by way, until no way adds anything."""
    set_aside = settling._close(sink, settling._way(sink), set_aside)
    before: Losses | None = None
    while before != set_aside:
        before = set_aside
        todo = [(sink.stage, settling._way(sink))]
        while todo:
            stage, way = todo.pop()
            for source in stage.inputs:
                for writer in settling._graph.writers(source):
                    above = settling._way_above(way, source, writer)
                    floor = above[1] if above is not None else {}
                    taken = settling._find_read(writer, source, set_aside, floor)
                    set_aside = unite(set_aside, taken)
                    todo.append((writer.stage, above))
    return set_aside


def slots(facts: Iterable[Fact]) -> list[Slot]:
    found = [EMPTY]
    for fact in facts:
        found.append(apply_fact(found[-1], fact).slot)
    return found


events = st.one_of(takes(4), skips(4), recreations(4))


@patiently
@given(st.lists(events, min_size=1, max_size=16))
def test_it_is_what_walking_every_way_gives(happened: list[Take | Skip | Recreate]) -> None:
    flow = Flow(layers(2))
    for event in happened:
        flow.run(event)
    with (
        patch.object(Graph, "_to_roots", plain_roots),
        patch.object(_Settling, "_spread", plain_spread),
    ):
        plain = slots(flow.facts)
    assert slots(flow.facts) == plain


@pytest.mark.parametrize("lossy", [False, True], ids=["reached", "lost"])
def test_each_sink_asks_once_for_each_link_between_stages_before_it(lossy: bool) -> None:
    shape = layers(12)
    links = sum(len(stage.inputs) for stage in shape)
    assert _steps(shape, lossy=lossy) <= 2 * len(shape) * links


def _steps(shape: tuple[StageShape, ...], *, lossy: bool) -> int:
    """How often one last commit asks what a stage had taken."""
    flow = Flow(shape)
    for number in range(len(shape)):
        flow.run(Take(number, (9,) * 4, ((1, 0), (1, 1))))
    if lossy:
        flow.run(Skip(len(shape) - 1, (1,) * 4))
    *facts, last = flow.facts
    before = slots(facts)[-1]
    with patch.object(Graph, "through", autospec=True, side_effect=Graph.through) as through:
        after = apply_fact(before, last).slot
    assert state_of(after).frontier
    return through.call_count
