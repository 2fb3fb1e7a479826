"""The native manifest: defaults, and every mistake with its line, column and fix."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strategies import patiently
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.triggers import Interval

EXAMPLE = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text()


def problems_of(text: str) -> list[Problem]:
    with pytest.raises(UserError) as raised:
        read_manifest(text)
    return list(raised.value.problems)


def problem_with(old: str, new: str) -> Problem:
    """The only problem of the example after one change."""
    assert old in EXAMPLE
    (problem,) = problems_of(EXAMPLE.replace(old, new))
    return problem


def place_of(word: str, text: str = EXAMPLE) -> tuple[int, int]:
    """Line and column where `word` first stands."""
    before = text[: text.index(word)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def test_example_says_what_it_says() -> None:
    manifest = read_manifest(EXAMPLE).model
    assert (manifest.name, manifest.state) == ("orders", "running")
    enrich, load = manifest.stages
    assert enrich.source_of(enrich.sinks[0]) == "enriched"
    assert load.source_of(load.sinks[0]) == "enriched_topic"
    assert load.trigger is not None
    assert load.trigger.trigger == Interval(1_000)
    assert [sink.kind for stage in manifest.stages for sink in stage.sinks] == ["kafka", "iceberg"]
    assert load.sinks[0].settings.target == "lakehouse.raw.orders"


def test_frequent_snapshots_are_warned_of() -> None:
    (warning,) = read_manifest(EXAMPLE).model.warnings()
    assert warning.startswith("stage load: a batch every 1 second")
    assert read_manifest(EXAMPLE.replace("1 second", "10 seconds")).model.warnings() == ()


def test_stages_come_in_the_order_of_their_data() -> None:
    manifest = read_manifest(EXAMPLE).model
    backwards = manifest.model_copy(update={"stages": manifest.stages[::-1]})
    assert [stage.name for stage in backwards.stages_in_order()] == ["enrich", "load"]


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("name: orders", "name: My Orders", "'My Orders' cannot stand here", "lower-case letters"),
        ("orders.in", "orders/in", "'orders/in' cannot stand here", "letters, digits, ., -"),
        ("raw.orders", "orders", "'orders' cannot stand here", "namespace.table"),
        ("    format", "\tformat", "not YAML: a tab stands", "spaces: YAML takes no tabs"),
        ('"SELECT *, 2 AS a"', "SELECT *, 2 AS a", "unknown key '2 AS a'", "text in quotes"),
    ],
)
def test_mistake_of_a_newcomer_is_told_in_words(
    old: str, new: str, message: str, hint: str
) -> None:
    text = EXAMPLE.replace("SELECT *, amount * 0.2 AS tax FROM orders", "SELECT *, 2 AS a")
    problems = problems_of(text.replace(old, new, 1))
    problem = next(p for p in problems if p.message.startswith(message))
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("old", "path"),
    [
        ("name: [orders]", "name"),
        ("- name: [orders]", "inputs.0.name"),
        ("topic: [orders.in]", "inputs.0.kafka.topic"),
        ("- name: [enrich]", "stages.0.name"),
        ("{name: [enriched], sql", "stages.0.steps.0.name"),
        ("{name: [enriched_topic]", "stages.0.sinks.0.name"),
        ("topic: [orders.enriched]", "stages.0.sinks.0.kafka.topic"),
        ("from: [enriched]", "stages.0.sinks.0.from"),
        ("table: [raw.orders]", "stages.1.sinks.0.iceberg.table"),
    ],
)
@pytest.mark.parametrize("value", ["../../etc/passwd", "a/../b", "..", "x" * 300, "a b"])
def test_what_may_become_a_path_is_a_short_and_plain_name(old: str, path: str, value: str) -> None:
    """`old` stands in the example, with brackets around what is replaced."""
    before, _, rest = old.partition("[")
    name, _, behind = rest.partition("]")
    assert f"{before}{name}{behind}" in EXAMPLE
    text = EXAMPLE.replace(f"{before}{name}{behind}", f"{before}{value}{behind}", 1)
    found = problems_of(text)
    assert path in {problem.path for problem in found}
    assert all(len(problem.message) < 200 for problem in found)


@pytest.mark.parametrize(
    ("topic", "whose"), [("waybill.commits", "Waybill"), ("__consumer_offsets", "Kafka")]
)
@pytest.mark.parametrize("old", ["orders.in", "orders.enriched"])
def test_topic_that_others_need_is_refused(old: str, topic: str, whose: str) -> None:
    with pytest.raises(UserError) as raised:
        read_manifest(EXAMPLE.replace(old, topic), reserved="waybill")
    (problem,) = raised.value.problems
    assert problem.message == f"topic {topic!r} is one of {whose}'s own"
    assert (problem.line, problem.column) == place_of(topic, EXAMPLE.replace(old, topic))


@pytest.mark.parametrize(
    ("old", "new", "path", "hint"),
    [
        ("stages:", "stagse:", "stagse", "did you mean 'stages'?"),
        ("    format: json", "    fromat: json", "inputs.0.fromat", "did you mean 'format'?"),
        ("partitions: 4", "partition: 4", "inputs.0.kafka.partition", "did you mean 'partitions'?"),
        ("name: enriched, sql:", "name: enriched, slq:", "stages.0.steps.0.slq", "mean 'sql'?"),
        ("iceberg: {", "icberg: {", "stages.1.sinks.0.icberg", "did you mean 'iceberg'?"),
        ("mode:", "mood:", "stages.1.sinks.0.iceberg.mood", "did you mean 'mode'?"),
        ("processingTime", "processingTme", "stages.1.trigger.processingTme", "'processingTime'?"),
        ("from:", "zzz:", "stages.0.sinks.0.zzz", "known here: name, was, from, kafka, iceberg"),
    ],
)
def test_misspelt_key_is_named_with_the_right_one(old: str, new: str, path: str, hint: str) -> None:
    text = EXAMPLE.replace(old, new, 1)
    (problem,) = (p for p in problems_of(text) if p.message.startswith("unknown key"))
    assert problem.path == path
    assert hint in problem.hint
    assert problem.line == place_of(new, text)[0]


def test_missing_key_is_named() -> None:
    problem = problem_with("name: orders\ninputs", "inputs")
    assert problem.message == "'name' is missing"


def test_all_problems_are_told_at_once() -> None:
    text = EXAMPLE.replace("partitions: 4", "partitions: 0").replace("mode: append", "mode: merge")
    assert [problem.path for problem in problems_of(text)] == [
        "inputs.0.kafka.partitions",
        "stages.1.sinks.0.iceberg.mode",
    ]


def test_wrong_value_has_its_line_and_column() -> None:
    problem = problem_with("partitions: 4", "partitions: 0")
    assert (problem.line, problem.column) == place_of("4}")
    assert problem.message == "'partitions' must be at least 1, this is 0"


def test_bad_duration_is_named() -> None:
    problem = problem_with("1 second", "soon")
    assert problem.message.startswith("'soon' is not a duration")
    assert problem.path == "stages.1.trigger.processingTime"


def test_sink_names_exactly_one_target() -> None:
    both = problem_with("iceberg: {table", "kafka: {topic: t}, iceberg: {table")
    assert both.message == "a sink names exactly one of kafka, iceberg, postgres, console"
    assert both.path == "stages.1.sinks.0"


def test_unknown_input_comes_with_the_known_ones() -> None:
    problem = problem_with("inputs: [enriched_topic]", "inputs: [enriched]")
    assert problem.message == "stage 'load' reads 'enriched': no input, no Kafka sink"
    assert problem.hint == "did you mean 'enriched_topic'? known: orders, enriched_topic"
    assert (problem.line, problem.column) == place_of("enriched_topic]")


def test_unknown_view_comes_with_the_known_ones() -> None:
    problem = problem_with("from: enriched,", "from: enrichd,")
    assert problem.message == "no view is called 'enrichd'"
    assert problem.hint == "did you mean 'enriched'? known in this stage: orders, enriched"
    assert (problem.line, problem.column) == place_of("enriched, kafka")


def test_sink_of_several_inputs_says_from_which() -> None:
    problem = problem_with("inputs: [enriched_topic]", "inputs: [enriched_topic, orders]")
    assert problem.message == "sink 'lake' must say `from`: the stage has several inputs"
    assert problem.path == "stages.1.sinks.0"


def test_key_is_a_column() -> None:
    problem = problem_with("key: order_id   ", "key: orderid    ")
    assert problem.message == "key 'orderid' is not a column"
    assert problem.hint.startswith("did you mean 'order_id'? columns: order_id, customer,")
    assert problem.path == "inputs.0.key"


def test_mistake_in_the_columns_has_its_place() -> None:
    problem = problem_with("customer STRING", "customer TEXT")
    assert problem.message == "unknown type TEXT"
    assert problem.path == "inputs.0.schema"
    line, column = place_of("customer STRING")
    assert (problem.line, problem.column) == (line, column + len("customer "))


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("name: load", "name: enrich", "enrich"),
        ("name: lake", "name: orders", "orders"),
        ("{name: enriched, sql", "{name: orders, sql", "orders"),
    ],
)
def test_name_is_taken_once(old: str, new: str, name: str) -> None:
    found = problems_of(EXAMPLE.replace(old, new).replace("from: enriched", "from: orders"))
    assert [problem.message for problem in found] == [f"the name {name!r} is used already"]


def test_topic_belongs_to_one_input_or_sink() -> None:
    problem = problem_with("topic: orders.enriched", "topic: orders.in")
    assert problem.message == "topic 'orders.in' is already that of input 'orders'"
    assert problem.path == "stages.0.sinks.0.kafka.topic"


def test_stages_that_read_each_other_are_refused() -> None:
    text = EXAMPLE.replace("inputs: [orders]", "inputs: [orders, back]").replace(
        "      - {name: lake,",
        "      - {name: back, kafka: {topic: orders.back}}\n      - {name: lake,",
    )
    found = problems_of(text)
    assert {problem.path for problem in found} == {"stages.0", "stages.1"}
    assert all("in a cycle" in problem.message for problem in found)


def test_stage_that_reads_itself_is_refused_and_no_stage_behind_it() -> None:
    problem = problem_with("inputs: [orders]", "inputs: [orders, enriched_topic]")
    assert problem.message == "stage 'enrich' reads what it writes, in a cycle"


def test_no_stages_are_too_few() -> None:
    (problem,) = problems_of(EXAMPLE[: EXAMPLE.index("stages:")] + "stages: []\n")
    assert problem.path == "stages"


ends = st.integers(0, len(EXAMPLE))
debris = st.text("&*!<>?[]{}-:'\"#|%@~ 1a\n\t\0", max_size=4)


@patiently
@given(ends, st.integers(0, 12), debris)
@example(0, 0, "---\n---\n")
@example(0, len(EXAMPLE), "? [a, b]\n: c\n")
@example(0, len(EXAMPLE), "{1: 2, 2026-11-21: x}\n")
def test_any_text_is_a_manifest_or_has_problems(cut: int, drop: int, put: str) -> None:
    try:
        read_manifest(EXAMPLE[:cut] + put + EXAMPLE[cut + drop :])
    except UserError as error:
        problems = error.problems
    else:
        return
    assert problems
    assert all(problem.message for problem in problems)


def test_what_stands_in_a_list_may_be_named_in_a_path() -> None:
    (named,) = read_manifest(EXAMPLE).place([Problem(message="wrong", path="stages.load.sinks")])
    (counted,) = read_manifest(EXAMPLE).place([Problem(message="wrong", path="stages.1.sinks")])
    assert named == counted
    assert named.path == "stages.1.sinks"


def test_a_path_into_what_is_not_there_is_kept() -> None:
    (gone,) = read_manifest(EXAMPLE).place([Problem(message="wrong", path="stages.removed.sinks")])
    assert gone.path == "stages.removed.sinks"
    assert gone.line is not None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("mode: overwrite", "sink lake of stage load: every batch replaces the table, and so"),
        (
            "maintenance: {expireSnapshots: {olderThan: 2 days}}",
            "sink lake of stage load: snapshots go after 2 days, and tokens name them for 30 days",
        ),
        ("maintenance: {expireSnapshots: {}}", None),
    ],
)
def test_what_a_table_loses_is_warned_of(more: str, said: str | None) -> None:
    text = EXAMPLE.replace("mode: append", more)
    assert more in text
    found = [each for each in read_manifest(text).model.warnings() if each.startswith("sink ")]
    assert [each[: len(said)] for each in found if said] == ([said] if said else [])
    assert bool(found) is bool(said)
