"""Judges a query by lists of what is allowed; what is on no list is refused. Pure.

First as it was parsed, before Spark sees anything of it; then as it was analyzed.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.manifest.foreign import tell_foreign
from waybill_shared.contract.manifest.foreign_words import Spot
from waybill_shared.contract.suggestions import hint_of_names
from waybill_spark.guard.objections import Objection, ObjectionRaised, function_of
from waybill_spark.guard.options import OPTIONS, unknown_options
from waybill_spark.guard.sizes import SIZE_MAX, size_of_call
from waybill_spark.guard.trees import Node, NotUnderstood, Way, nodes_of

TEXT_CHARACTERS_MAX: Final = 20_000
NODES_MAX: Final = 400
EXPRESSIONS_MAX: Final = 5_000
DEPTH_MAX: Final = 64
JOINS_MAX: Final = 20
UNIONS_MAX: Final = 60  # in a row they are as many levels
EXPLODES_MAX: Final = 10
PATTERN_CHARACTERS_MAX: Final = 1_000

PATTERNS: Final = {
    "rlike": (1,), "regexp": (1,), "regexp_like": (1,), "regexp_count": (1,),
    "regexp_extract": (1,), "regexp_extract_all": (1,), "regexp_instr": (1,),
    "regexp_replace": (1,), "regexp_substr": (1,), "split": (1,), "str_to_map": (1, 2),
    "RLike": (1,),
}  # fmt: skip
"""Functions and classes with regular expressions, and which arguments those are."""
OPAQUE: Final = frozenset({
    "evalContext", "evalMode", "escapeChar", "value", "data", "groupingSetIndexes", "hint", "delay",
    "patterns", "options", "windowSpec", "ioschema",
})  # fmt: skip
"""Fields that Spark does not write down and that hold no tree: modes, constants, names."""
GENERATOR_PARTS: Final = {"product-class", "funcName"}  # others are a database and a catalog
SPOKEN: Final = {
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(…)",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER(…)",
    "ScriptTransformation": "TRANSFORM … USING",
    "Sample": "TABLESAMPLE, which takes other rows when a batch is run again,",
    "UnresolvedHint": "a hint",
    "RelationTimeTravel": "VERSION or TIMESTAMP AS OF",
    "NamedParameter": "a parameter",
    "PosParameter": "a parameter",
    "FunctionTableSubqueryArgumentExpression": "TABLE(…) as an argument",
    "InsertIntoDir": "INSERT OVERWRITE DIRECTORY",
    "InsertIntoStatement": "INSERT",
    "RepartitionByExpression": "DISTRIBUTE BY",
}
"""Classes as people know them."""
KEYWORDS: Final = {"CurrentUser": "current_user"}
"""Classes of functions that need no brackets: only the analysis sees that they are calls."""
WINDOWS: Final = "windowDefinitions"
"""The one field that is not written down either although it has trees: `windows` returns them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why a name is on no list of what is allowed."""

    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    allowed: frozenset[str]
    refused: Mapping[str, Refused]
    any: bool = False
    """True if every name is accepted, of however many parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The lists. Kinds are classes below Spark's package. If not `bounded`, any size is
    accepted.
    """

    functions: Names
    tables: Names
    expressions: frozenset[str]
    parsed: frozenset[str]
    analyzed: frozenset[str]
    executed: frozenset[str]
    """Allowed in what runs, in addition to the analyzed ones."""
    bounded: bool = True

    @property
    def depth_max(self) -> int:
        return DEPTH_MAX if self.bounded else sys.maxsize


def objection_to_parsed(
    tree: object,
    windows: Callable[[Way], Iterable[object]],
    allowed: Allowed,
    views: frozenset[str],
) -> Objection | None:
    """Return the first objection to a parsed query. `windows` returns what a `WINDOW` clause
    defines, as trees. The query may read `views`, and what it names itself with `WITH`.
    """
    try:
        nodes = [*nodes_of(tree, allowed.depth_max)]
        for node in [*nodes]:
            for number, each in enumerate(windows(node.way) if WINDOWS in node.fields else ()):
                nodes += nodes_of(each, allowed.depth_max, (*node.way, (WINDOWS, number)))
        return _first(nodes, allowed, views)
    except NotUnderstood as error:
        return Objection(message=f"the query is not accepted: {error}", hint="make it smaller")
    except ObjectionRaised as refusal:
        return refusal.objection


def objection_to_analyzed(
    tree: object, allowed: Allowed, *, runs: bool = False
) -> Objection | None:
    kinds = allowed.analyzed | allowed.expressions | (allowed.executed if runs else frozenset())
    try:
        for node in nodes_of(tree, allowed.depth_max * 4):
            _check_kind(node, kinds, allowed)
    except NotUnderstood as error:
        return Objection(message=f"the query is not accepted: {error}", hint="make it smaller")
    except ObjectionRaised as refusal:
        return refusal.objection
    return None


def _first(nodes: list[Node], allowed: Allowed, views: frozenset[str]) -> Objection | None:
    named = (name for node in nodes for name in _with_names(node))
    relations = Names(allowed=frozenset(map(str.lower, (*views, *named))), refused={})
    kinds = allowed.parsed | allowed.expressions
    for node in nodes:
        _check_kind(node, kinds, allowed)
        _check_fields(node)
        _check_names(node, allowed, relations)
    if allowed.bounded:
        _check_bounds(nodes, allowed)
    return None


def _check_kind(node: Node, kinds: frozenset[str], allowed: Allowed) -> None:
    if node.name in KEYWORDS:
        _check_name(node, KEYWORDS[node.name], allowed.functions, "function")
    if node.kind not in kinds:
        raise ObjectionRaised(f"{_spell(node.name)} is not accepted", node)


def _check_fields(node: Node) -> None:
    for name, value in node.fields.items():
        if value is None and name not in OPAQUE and name != WINDOWS:
            raise ObjectionRaised(f"{_spell(node.name)} is not understood here ({name})", node)


def _check_names(node: Node, allowed: Allowed, relations: Names) -> None:
    match node.name:
        case "UnresolvedFunction":
            _check_name(node, node.words("nameParts"), allowed.functions, "function")
        case "UnresolvedGenerator":
            named = node.fields.get("name")
            parts = named if isinstance(named, dict) else {}
            name = parts.get("funcName") if parts.keys() == GENERATOR_PARTS else None
            _check_name(node, name, allowed.tables, "function")
        case "UnresolvedTableValuedFunction":
            _check_name(node, node.words("name"), allowed.tables, "function")
        case "UnresolvedRelation":
            if node.fields.get("isStreaming"):
                raise ObjectionRaised(
                    "STREAM is not accepted", node, "every input is a stream here"
                )
            _check_name(node, node.words("multipartIdentifier"), relations, "view")


def _check_name(node: Node, name: str | None, names: Names, what: str) -> None:
    wanted = (name or "").lower()
    if names.any or wanted in names.allowed:
        return
    refused = names.refused.get(wanted)
    if refused is not None:
        raise ObjectionRaised(f"{wanted} is not accepted: {refused.reason}", node, refused.hint)
    foreign = tell_foreign(Spot.FUNCTION, wanted) if what == "function" else None
    if foreign is not None:
        raise ObjectionRaised(foreign[0], node, foreign[1])
    if name is None or "," in name:
        shown = (name or "").replace(", ", ".")
        raise ObjectionRaised(f"{what} {shown} is not accepted: names have one part here", node)
    hint = hint_of_names(name, sorted(names.allowed), f"{what}s here")
    raise ObjectionRaised(f"no {what} is called `{name}`", node, hint)


def _with_names(node: Node) -> Iterator[str]:
    for item in node.fields.get("cteRelations") or ():
        if isinstance(item, dict) and isinstance(item.get("_1"), str):
            yield item["_1"]


def _check_patterns(node: Node) -> None:
    name = function_of(node) or node.name
    for at in PATTERNS.get(name, ()):
        if at < len(node.children):
            pattern = node.children[at]
            text = pattern.fields.get("value")
            if pattern.name != "Literal" or not isinstance(text, str):
                message = f"{name}: a regular expression must be a constant"
                raise ObjectionRaised(message, node, "write it down as text")
            if len(text) > PATTERN_CHARACTERS_MAX:
                message = f"{name}: a regular expression has {PATTERN_CHARACTERS_MAX} characters"
                raise ObjectionRaised(f"{message} at most", node)


def _check_options(node: Node) -> None:
    function = function_of(node)
    for name in unknown_options(function, node):
        if not name:
            message = f"{function}: the name of an option must be a constant"
            raise ObjectionRaised(message, node, "write it down as text")
        hint = hint_of_names(name, OPTIONS, "options")
        raise ObjectionRaised(f"{function}: {name:.80} is not accepted as an option", node, hint)


def _check_bounds(nodes: list[Node], allowed: Allowed) -> None:
    for node in nodes:
        _check_patterns(node)
        _check_options(node)
    plans = [node for node in nodes if node.kind in allowed.parsed]
    _check_count(plans, "nodes", NODES_MAX)
    _check_count(
        [node for node in nodes if node.kind in allowed.expressions], "expressions", EXPRESSIONS_MAX
    )
    _check_count([n for n in plans if n.name in ("Join", "LateralJoin")], "joins", JOINS_MAX)
    _check_count([n for n in plans if n.name == "Union"], "unions", UNIONS_MAX)
    explodes = [
        n for n in nodes if n.name == "Generate" or function_of(n) in allowed.tables.allowed
    ]
    _check_count(explodes, "explodes", EXPLODES_MAX)
    together = 1
    for node in nodes:
        together *= max(size_of_call(node), 1)
        if together > SIZE_MAX:
            message = f"what the query makes by numbers is more than {SIZE_MAX} together"
            raise ObjectionRaised(
                message, node, f"use constants with a product of {SIZE_MAX} at most"
            )


def _check_count(nodes: list[Node], what: str, most: int) -> None:
    if len(nodes) > most:
        message = f"the query has {len(nodes)} {what}, {most} at most are accepted"
        raise ObjectionRaised(message, nodes[most], "cut it into steps")


def _spell(name: str) -> str:
    return SPOKEN.get(name, name.removeprefix("Unresolved"))
