"""From where stages read again when a person asks for it, and what is refused."""

from dataclasses import replace

import pytest

from unit.stage_runner.fakes import UID, World, carry_out, command, running
from waybill_shared.contract.beginnings import InputOffset
from waybill_shared.contract.commands import Restart, RestartFrom
from waybill_shared.contract.rewinds import StageRewind

UPSERT = """\
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: orders.in, partitions: 2}
    schema: "order_id BIGINT, amount DECIMAL(10,2)"
stages:
  - name: enrich
    inputs: [orders]
    sinks:
      - {name: enriched, kafka: {topic: orders.enriched}}
  - name: load
    inputs: [enriched]
    sinks:
      - {name: lake, iceberg: {table: raw.orders, mode: upsert, keys: [order_id]}}
"""


def ask(world: World, body: Restart, *, manifest: str | None = None) -> tuple[StageRewind, ...]:
    """The rewinds in the newest record, after a restart with this body."""
    runner = running(world) if manifest is None else running(world, manifest)
    asked = replace(command(2, "restart"), body=body)
    carry_out(runner, asked, 2)
    return world.records[-1].rewinds


def at(*offsets: tuple[int, int], topic: str = "orders.in") -> tuple[InputOffset, ...]:
    return tuple(InputOffset(topic=topic, partition=p, offset=offset) for p, offset in offsets)


def test_a_rewind_is_noted_with_a_number_and_who_asked(world: World) -> None:
    (rewind,) = ask(world, Restart(offsets=at((0, 40)), confirmed=True))
    assert (rewind.stage, rewind.since, rewind.number) == ("enrich", 1, 1)
    assert rewind.starts == {("orders.in#1", 0): 40}
    assert rewind.by == command(2, "restart").actor
    assert world.stopped == [UID]
    assert world.records[-1].generation == 1


@pytest.mark.parametrize("word", ["earliest", "fresh"])
def test_earliest_is_what_root_inputs_still_hold(world: World, word: RestartFrom) -> None:
    """So is `fresh`, for a stage that began with the first record."""
    (rewind,) = ask(world, Restart(start_from=word, confirmed=True))
    assert rewind.stage == "enrich"
    assert set(rewind.starts.values()) == {3}


def test_a_time_becomes_offsets_once(world: World) -> None:
    (rewind,) = ask(world, Restart(at=50, confirmed=True))
    assert set(rewind.starts.values()) == {50}


def test_a_stage_alone_reads_its_inner_topic_again(world: World) -> None:
    (rewind,) = ask(world, Restart(start_from="earliest", stage="load", confirmed=True))
    assert rewind.stage == "load"
    assert {topic_id for topic_id, _ in rewind.starts} == {"orders.enriched#1"}


def test_a_rewind_of_another_partition_leaves_the_one_before(world: World) -> None:
    runner = running(world)
    for number, places in ((2, (0, 1)), (3, (1, 2))):
        body = Restart(offsets=at(*((place, 40 + number) for place in places)), confirmed=True)
        carry_out(runner, replace(command(number, "restart"), body=body), number)
    found = {
        r.number: {place: at for (_, place), at in r.starts.items()}
        for r in world.records[-1].rewinds
    }
    assert found == {1: {0: 42}, 2: {1: 43, 2: 43}}


@pytest.mark.parametrize(
    "body", [Restart(offsets=at((0, 40))), Restart(at=50), Restart(start_from="fresh")]
)
def test_offsets_of_a_topic_of_before_are_refused(world: World, body: Restart) -> None:
    """Also if only the topic of a sink is another one."""
    runner = running(world)
    world.topics = {"orders.in": "orders.in#1", "orders.enriched": "orders.enriched#2"}
    carry_out(runner, replace(command(2, "restart"), body=body), 2)
    assert (
        "created again, so no offset of before counts: orders.enriched" in world.problems[0].message
    )
    assert "--from earliest" in world.problems[0].hint
    assert len(world.records) == 1


def test_a_superseded_rewind_stays_recorded_and_says_so(world: World) -> None:
    runner = running(world)
    body = Restart(start_from="earliest", confirmed=True)
    carry_out(runner, replace(command(2, "restart"), body=body), 2)
    carry_out(runner, command(3, "stop"), 3)
    assert ("c2", "failed") in world.answers
    assert (
        world.problems[0].hint == "where it begins is recorded all the same: the next start does it"
    )
    assert world.records[-1].rewinds


def test_the_newest_rewind_of_a_stage_replaces_its_last_one(world: World) -> None:
    runner = running(world)
    for number, offset, stage in ((2, 40, "enrich"), (3, 50, "load"), (4, 60, "enrich")):
        topic = "orders.in" if stage == "enrich" else "orders.enriched"
        body = Restart(offsets=at((0, offset), topic=topic), confirmed=True)
        carry_out(runner, replace(command(number, "restart"), body=body), number)
    found = {r.stage: (r.number, *r.starts.values()) for r in world.records[-1].rewinds}
    assert found == {"load": (2, 50), "enrich": (3, 60)}


def test_nothing_is_done_before_it_is_confirmed(world: World) -> None:
    assert ask(world, Restart(offsets=at((1, 40)))) == ()
    assert world.answers[-1] == ("c2", "failed")
    assert [problem.message for problem in world.problems] == [
        "stage enrich reads up to 50 records of orders.in[1] again, from offset 40",
        "stage enrich skips what it has not read of orders.in[1] before offset 40",
    ]
    assert all("--yes" in problem.hint for problem in world.problems)
    assert (len(world.records), world.stopped) == (1, [])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            Restart(offsets=at((0, 2))),
            "began at 3, what lies before is lost, before_start",
        ),
        (Restart(offsets=at((0, 91))), "orders.in[0]=91: the topic holds 3 to 90"),
        (Restart(offsets=at((9, 5))), "topic orders.in has no partition 9"),
        (Restart(offsets=at((0, 5), topic="else")), "orders does not read topic else"),
        (Restart(start_from="earliest", stage="nope"), "orders has no stage nope"),
        (Restart(at=2**45), "is in the future"),
    ],
    ids=["before its base", "beyond the end", "partition", "topic", "stage", "future"],
)
def test_a_rewind_that_is_not_possible_changes_nothing(
    world: World, body: Restart, message: str
) -> None:
    assert ask(world, replace(body, confirmed=True)) == ()
    assert message in world.problems[0].message
    assert world.problems[0].hint
    assert (len(world.records), world.stopped) == (1, [])


def test_a_sink_that_each_batch_replaces_is_refused_also_in_a_later_stage(world: World) -> None:
    manifest = UPSERT.replace("mode: upsert, keys: [order_id]", "mode: overwrite")
    assert ask(world, Restart(start_from="earliest", confirmed=True), manifest=manifest) == ()
    assert "stage load: sink lake is replaced by each batch" in world.problems[0].message
    assert "not supported" in world.problems[0].message


@pytest.mark.parametrize("stage", ["load", "enrich", None])
def test_a_sink_that_shows_older_rows_meanwhile_is_named_before_it_is_confirmed(
    world: World, stage: str | None
) -> None:
    body = Restart(start_from="earliest", stage=stage)
    assert ask(world, body, manifest=UPSERT) == ()
    (named,) = [each for each in world.problems if "sink" in each.message]
    assert named.message == "stage load: sink lake shows older rows again"
    assert "rewinding" in named.hint


def test_a_stage_that_upserts_and_has_two_inputs_is_not_fed_older_rows(world: World) -> None:
    """They would come after newer ones of the other input, and stay."""
    step = "    steps: [{name: all, sql: SELECT order_id FROM orders}]\n"
    both = UPSERT.replace("[enriched]\n", f"[enriched, orders]\n{step}")
    body = Restart(start_from="earliest", confirmed=True)
    assert ask(world, body, manifest=both) == ()
    assert "older ones of one input" in world.problems[0].message


def test_a_stage_that_upserts_is_rewound_when_it_is_confirmed(world: World) -> None:
    body = Restart(start_from="earliest", stage="load", confirmed=True)
    (rewind,) = ask(world, body, manifest=UPSERT)
    assert rewind.stage == "load"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("mode: upsert, keys: [order_id], shared: true", "of others for good"),
        ("mode: overwrite", "is replaced by each batch"),
    ],
    ids=["shared", "overwrite"],
)
def test_a_stage_is_not_rewound_where_older_rows_would_stay(
    world: World, mode: str, why: str
) -> None:
    manifest = UPSERT.replace("mode: upsert, keys: [order_id]", mode)
    body = Restart(start_from="earliest", stage="load", confirmed=True)
    assert ask(world, body, manifest=manifest) == ()
    assert why in world.problems[0].message


def test_where_a_topic_was_created_again_nothing_is_rewound(world: World) -> None:
    runner = running(world)
    world.topics = {"orders.in": "orders.in#2"}
    body = Restart(start_from="earliest")
    carry_out(runner, replace(command(2, "restart"), body=body), 2)
    assert world.records[-1].rewinds == ()
    assert world.records[-1].generation == 2


def test_latest_begins_at_the_present_end(world: World) -> None:
    (rewind,) = ask(world, Restart(start_from="latest", confirmed=True), manifest=UPSERT)
    assert (rewind.stage, set(rewind.starts.values())) == ("enrich", {90})
    assert rewind.forward, "the driver of before may be beyond when it ends"


def test_nothing_is_skipped_before_it_is_confirmed(world: World) -> None:
    assert ask(world, Restart(start_from="latest")) == ()
    assert [problem.message for problem in world.problems] == [
        f"stage enrich skips what it has not read of orders.in[{p}] before offset 90"
        for p in range(4)
    ]
    assert "skipped_by_operator" in world.problems[0].hint
    assert (len(world.records), world.stopped) == (1, [])


def test_two_sinks_of_one_table_share_it(world: World) -> None:
    """They are of one pipeline, so no word of the manifest says so."""
    two = UPSERT.replace("iceberg: {table", "postgres: {connection: warehouse, table")
    other = "      - {name: again, postgres: {connection: warehouse, table: raw.orders}}\n"
    body = Restart(start_from="earliest", stage="load", confirmed=True)
    assert ask(world, body, manifest=two + other) == ()
    assert "of others for good" in world.problems[0].message
