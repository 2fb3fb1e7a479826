"""A query as a tree, from what Spark writes of a plan as JSON.

Pure.

A plan is a list in preorder. What its nodes contain apart from their children are fields: values,
and trees of their own. Each node knows the path that leads to it from the root.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from waybill_shared.contract.errors import ContractError

SPARK: Final = "org.apache.spark.sql."

_Step = tuple[str, int]
"""Into a field, by its name, or among the items of one; `children` for a node's own."""
Way = tuple[_Step, ...]


@dataclass(slots=True, kw_only=True)
class Node:
    kind: str
    """The class, below Spark's package."""
    fields: Mapping[str, Any]
    way: Way
    depth: int
    children: list["Node"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.kind.rpartition(".")[2]

    def words(self, key: str) -> str | None:
        """Return a name of one part, which Spark writes as `[part]`."""
        text = self.fields.get(key)
        return text[1:-1] if isinstance(text, str) and text[:1] == "[" else None


class NotUnderstood(ContractError):
    """A tree that is none, or deeper than may be."""


def nodes_of(tree: object, depth_max: int, way: Way = ()) -> Iterator[Node]:
    """Yield all nodes of the tree that `way` leads to, each before what it contains."""
    waiting: list[tuple[object, Way, int]] = [(tree, way, 0)]
    while waiting:
        listed, way, depth = waiting.pop()
        for node in _preorder(listed, way, depth):
            if node.depth > depth_max:
                raise NotUnderstood(f"it is nested deeper than {depth_max}")
            yield node
            for name, value in node.fields.items():
                for trees, at in _trees(value):
                    waiting.append((trees, (*node.way, (name, -1), *at), node.depth + 1))


def _preorder(listed: object, way: Way, depth: int) -> list[Node]:
    if not isinstance(listed, list) or not listed:
        raise NotUnderstood("it is no tree")
    found: list[Node] = []
    open_nodes: list[tuple[Node, int]] = []
    for item in listed:
        if not isinstance(item, dict) or not isinstance(item.get("class"), str):
            raise NotUnderstood("a node has no class")
        while open_nodes and len(open_nodes[-1][0].children) == open_nodes[-1][1]:
            open_nodes.pop()
        if found and not open_nodes:
            raise NotUnderstood("a node belongs to none")
        parent = open_nodes[-1][0] if open_nodes else None
        node = Node(
            kind=item["class"].removeprefix(SPARK),
            fields={k: v for k, v in item.items() if k not in ("class", "num-children")},
            way=way if parent is None else (*parent.way, ("children", len(parent.children))),
            depth=depth if parent is None else parent.depth + 1,
        )
        if parent is not None:
            parent.children.append(node)
        found.append(node)
        open_nodes.append((node, item.get("num-children", 0)))
    if any(len(node.children) != count for node, count in open_nodes):
        raise NotUnderstood("a node lacks a child")
    return found


def _trees(value: object) -> Iterator[tuple[object, Way]]:
    """Yield the trees in a field, and the path to each: a field may contain several, in lists and
    in tuples.
    """
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "class" in value[0]:
            yield value, ()
            return
        for number, item in enumerate(value):
            for tree, way in _trees(item):
                yield tree, (("", number), *way)
    elif isinstance(value, dict):
        for name, item in value.items():
            for tree, way in _trees(item):
                yield tree, ((name, -1), *way)
