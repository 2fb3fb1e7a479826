"""Who reads and writes which topics, as of a generation and with what was removed."""

from dataclasses import replace

from builders import make_input, make_sink, make_stage
from waybill_shared.contract.slots import Removal
from waybill_shared.contract.topology import Topology

WRITER = make_sink("middle", kind="kafka", topic_id="A2")
ENRICH = make_stage(
    "enrich", inputs=(make_input(topic_id="R"),), sinks=(replace(WRITER, retired=("A1",)),)
)
LOAD = make_stage(
    "load", inputs=(make_input("middle", topic_id="A2", root=False),), sinks=(make_sink("lake"),)
)
PRESENT = Topology([ENRICH, LOAD])


def test_a_stage_is_after_the_sink_that_writes_its_input() -> None:
    assert [each.key for each in PRESENT.writers(LOAD.inputs[0])] == ["enrich/middle@1"]
    assert PRESENT.writers(ENRICH.inputs[0]) == []
    assert PRESENT.readers(ENRICH.sinks[0]) == [LOAD]
    assert PRESENT.descendants("R") == {"enrich@1", "load@1"}
    assert PRESENT.root_ids() == {"R"}


def test_a_reader_that_was_removed_is_known_by_an_earlier_id_of_the_topic() -> None:
    late = replace(LOAD, name="late", inputs=(make_input("middle", topic_id="A1", root=False),))
    topology = PRESENT.with_removed([Removal(generation=2, stages=(late,))])
    assert topology.readers(ENRICH.sinks[0]) == [LOAD, late]
    assert topology.descendants("R") == {"enrich@1", "load@1", "late@1"}


def test_a_token_does_not_know_what_was_added_later() -> None:
    later = replace(LOAD, name="later", since=2, sinks=(make_sink("vault", since=2),))
    topology = Topology([ENRICH, LOAD, later])
    assert [stage.name for stage in topology.at(1).stages] == ["enrich", "load"]
    assert [each.sink.name for each in topology.awaited("R", 1)] == ["middle", "lake"]
    assert [each.sink.name for each in topology.awaited("R", 2, ["vault"])] == ["vault"]


def test_the_way_to_a_sink_has_every_stage_before_it() -> None:
    assert [stage.name for stage in PRESENT.towards(["load/lake@1"])] == ["load", "enrich"]
