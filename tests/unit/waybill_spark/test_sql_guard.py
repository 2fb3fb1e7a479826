"""The guard without Spark: trees as Spark writes them, judged by small lists."""

from dataclasses import replace
from typing import Any

import pytest

from waybill_shared.contract.manifest.foreign import ROWS, tell_foreign
from waybill_shared.contract.manifest.foreign_words import Spot
from waybill_spark.guard import judge as sql_guard
from waybill_spark.guard.judge import (
    Allowed,
    Names,
    Refused,
    objection_to_analyzed,
    objection_to_parsed,
)
from waybill_spark.guard.objections import Objection
from waybill_spark.guard.trees import NotUnderstood, nodes_of

EXPRESSIONS = "catalyst.expressions"
NODES = "catalyst.plans.logical"
Tree = list[dict[str, Any]]
ALLOWED = Allowed(
    functions=Names(
        allowed=frozenset(
            {"upper", "repeat", "rlike", "sequence", "format_string", "from_csv", "map"}
        ),
        refused={"uuid": Refused(reason="it changes", hint="hash a column")},
    ),
    tables=Names(allowed=frozenset({"explode", "stack"}), refused={}),
    expressions=frozenset({
        f"{EXPRESSIONS}.Literal", f"{EXPRESSIONS}.Multiply", f"{EXPRESSIONS}.UnaryMinus",
        "catalyst.analysis.UnresolvedFunction", "catalyst.analysis.UnresolvedAttribute",
        "catalyst.analysis.UnresolvedGenerator",
    }),
    parsed=frozenset({
        f"{NODES}.Project", f"{NODES}.Filter", f"{NODES}.Join", f"{NODES}.Union",
        f"{NODES}.UnresolvedWith", f"{NODES}.WithWindowDefinition",
        "catalyst.analysis.UnresolvedRelation",
        "catalyst.analysis.UnresolvedTableValuedFunction",
    }),
    analyzed=frozenset({f"{NODES}.Project"}),
    executed=frozenset({f"{NODES}.Filter"}),
)  # fmt: skip


def node(kind: str, children: int = 0, **fields: object) -> dict[str, Any]:
    return {"class": f"org.apache.spark.sql.{kind}", "num-children": children, **fields}


def literal(value: object, kind: str = "integer") -> Tree:
    return [node(f"{EXPRESSIONS}.Literal", value=str(value), dataType=kind)]


def column(name: str = "a") -> Tree:
    return [node("catalyst.analysis.UnresolvedAttribute", nameParts=f"[{name}]")]


def call(name: str, *arguments: Tree) -> Tree:
    children = [each for argument in arguments for each in argument]
    head = node(
        "catalyst.analysis.UnresolvedFunction", len(arguments), nameParts=f"[{name}]", filter=[]
    )
    return [head, *children]


def relation(name: str = "orders") -> Tree:
    kind = "catalyst.analysis.UnresolvedRelation"
    return [node(kind, multipartIdentifier=f"[{name}]", options=None, isStreaming=False)]


def select(*expressions: Tree, below: Tree | None = None) -> Tree:
    head = node(f"{NODES}.Project", 1, projectList=[*expressions], child=0)
    return [head, *(below or relation())]


def said(tree: object, windows: list[object] | None = None) -> Objection | None:
    return objection_to_parsed(tree, lambda way: windows or [], ALLOWED, frozenset({"orders"}))


def message(tree: object) -> str:
    objection = said(tree)
    assert objection is not None
    return objection.message


def test_what_is_on_the_lists_is_taken() -> None:
    assert said(select(call("upper", column()), call("UPPER", literal("x", "string")))) is None


def test_function_that_is_refused_says_why_and_what_else() -> None:
    objection = said(select(column(), call("upper", call("Uuid"))))
    assert objection == Objection(
        message="uuid is not accepted: it changes",
        hint="hash a column",
        way=(("projectList", -1), ("", 1), ("children", 0)),
    )


def test_function_of_no_list_is_refused() -> None:
    assert message(select(call("other"))) == "no function is called `other`"


@pytest.mark.parametrize(
    "word", [word for (spot, _), (_, word) in ROWS.items() if spot is Spot.FUNCTION]
)
def test_function_of_another_system_says_the_way(word: str) -> None:
    objection = said(select(call(word.upper())))
    assert objection is not None
    assert (objection.message, objection.hint) == tell_foreign(Spot.FUNCTION, word)


@pytest.mark.parametrize("name", ["system, upper", "upper, x"])
def test_names_have_one_part(name: str) -> None:
    assert "names have one part here" in message(select(call(name)))
    assert "names have one part here" in message(select(column(), below=relation(name)))


def test_only_views_and_what_the_query_names_itself_is_read() -> None:
    assert message(select(column(), below=relation("secrets"))) == "no view is called `secrets`"
    named = [{"product-class": "scala.Tuple3", "_1": "Mine", "_2": select(column())}]
    head = node(f"{NODES}.UnresolvedWith", 1, cteRelations=named, child=0)
    assert said([head, *select(column(), below=relation("mine"))]) is None
    assert "no view" in message([head, *select(column(), below=relation("other"))])


def with_options(*pairs: Tree) -> Tree:
    return select(call("from_csv", column(), literal("a INT", "string"), call("map", *pairs)))


def test_options_of_the_list_are_taken() -> None:
    pairs = (literal("SEP", "string"), column(), literal("mode", "string"), column())
    assert said(with_options(*pairs)) is None


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        (literal("maxColumns", "string"), "from_csv: maxColumns is not accepted as an option"),
        (column(), "from_csv: the name of an option must be a constant"),
        (call("upper", column()), "from_csv: the name of an option must be a constant"),
    ],
)
def test_other_options_are_refused_by_name(name: Tree, refusal: str) -> None:
    pairs = (literal("sep", "string"), column(), name, literal("1", "string"))
    assert message(with_options(*pairs)) == refusal


def test_query_in_a_field_is_judged_too() -> None:
    hidden = [{"product-class": "scala.Tuple3", "_1": "mine", "_2": select(call("uuid"))}]
    head = node(f"{NODES}.UnresolvedWith", 1, cteRelations=hidden, child=0)
    objection = said([head, *select(column())])
    assert objection is not None
    assert objection.way == (
        ("cteRelations", -1), ("", 0), ("_2", -1), ("projectList", -1), ("", 0),
    )  # fmt: skip


def test_what_a_window_clause_defines_is_judged_too() -> None:
    head = node(f"{NODES}.WithWindowDefinition", 1, windowDefinitions=None, child=0)
    tree = [head, *select(column())]
    assert said(tree, windows=[column()]) is None
    objection = said(tree, windows=[column(), call("uuid")])
    assert objection is not None
    assert objection.way == (("windowDefinitions", 1),)


def test_class_of_no_list_is_refused() -> None:
    script = node(f"{NODES}.ScriptTransformation", 1, script="cat", child=0)
    assert message([script, *relation()]) == "TRANSFORM … USING is not accepted"
    assert message(select([node(f"{EXPRESSIONS}.Evil")])) == "Evil is not accepted"


def test_what_spark_does_not_write_down_is_not_understood() -> None:
    tree = select(column())
    tree[-1]["builder"] = None
    assert "is not understood here (builder)" in message(tree)


@pytest.mark.parametrize(
    "tree", [None, {}, [], [1], [{"num-children": 0}], [*relation(), *relation()], select()[:1]]
)
def test_what_is_no_tree_is_refused(tree: object) -> None:
    assert "the query is not accepted" in message(tree)


def test_stream_is_not_taken() -> None:
    tree = relation()
    tree[0]["isStreaming"] = True
    assert "STREAM" in message(select(column(), below=tree))


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (call("repeat", column(), literal(10_001)), "more than 10000"),
        (call("repeat", column(), column()), "constant whole number"),
        (call("repeat", call("repeat", column(), literal(200)), literal(200)), "more than 10000"),
        (call("sequence", literal(1), literal(1_000_000)), "more than 10000"),
        (call("sequence", literal(1), column()), "constant whole number"),
        (call("format_string", literal("%99999d", "string")), "more than 10000"),
        (call("format_string", column()), "must be a constant"),
        (call("format_string", literal("²%99999d", "string")), "more than 10000"),
        (call("rlike", column(), column()), "must be a constant"),
        (call("rlike", column(), literal("a" * 1_001, "string")), "1000 characters at most"),
    ],
)
def test_what_a_query_makes_is_bounded(expression: Tree, says: str) -> None:
    assert says in message(select(expression))


def test_constants_may_be_simple_arithmetic() -> None:
    ten = [node(f"{EXPRESSIONS}.Multiply", 2, left=0, right=1), *literal(2), *literal(5)]
    assert said(select(call("repeat", column(), ten))) is None
    million = [node(f"{EXPRESSIONS}.Multiply", 2, left=0, right=1), *literal(1000), *literal(1000)]
    assert "more than" in message(select(call("repeat", column(), million)))


def test_queries_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_guard, "EXPRESSIONS_MAX", 3)
    assert said(select(*[column()] * 3)) is None
    assert "4 expressions, 3 at most" in message(select(*[column()] * 4))
    deep = relation()
    for _ in range(sql_guard.DEPTH_MAX + 1):
        deep = [node(f"{NODES}.Project", 1, projectList=[], child=0), *deep]
    assert "nested deeper than 64" in message(deep)


def test_analyzed_query_is_judged_by_a_list_of_its_own() -> None:
    project = [node(f"{NODES}.Project", projectList=[column()])]
    assert objection_to_analyzed(project, ALLOWED) is None
    filtered = [node(f"{NODES}.Filter", condition=column())]
    assert objection_to_analyzed(filtered, ALLOWED) is not None
    assert objection_to_analyzed(filtered, ALLOWED, runs=True) is None
    user = select([node(f"{EXPRESSIONS}.CurrentUser")])[:1]
    user[0]["num-children"] = 0
    refused = Names(
        allowed=frozenset(), refused={"current_user": Refused(reason="it tells of the machine")}
    )
    objection = objection_to_analyzed(user, replace(ALLOWED, functions=refused))
    assert objection is not None
    assert objection.message == "current_user is not accepted: it tells of the machine"


def test_nodes_know_their_way() -> None:
    tree = select(call("upper", column()))
    found = {each.name: each.way for each in nodes_of(tree, 9)}
    assert found == {
        "Project": (),
        "UnresolvedRelation": (("children", 0),),
        "UnresolvedFunction": (("projectList", -1), ("", 0)),
        "UnresolvedAttribute": (("projectList", -1), ("", 0), ("children", 0)),
    }
    with pytest.raises(NotUnderstood, match="lacks a child"):
        [*nodes_of(tree[:1], 9)]
