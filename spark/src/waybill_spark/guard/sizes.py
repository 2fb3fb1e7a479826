"""How much a call makes, as far as constants in the query say it."""

from typing import Final

from waybill_spark.guard.objections import ObjectionRaised, function_of
from waybill_spark.guard.trees import Node

SIZE_MAX: Final = 10_000
SIZES: Final = {
    "repeat": 1, "space": 0, "lpad": 1, "rpad": 1, "array_repeat": 1, "array_insert": 1,
    "stack": 0, "format_number": 1,
}  # fmt: skip
"""Functions that make as much as one of their arguments says, and which that is."""
FORMATS: Final = frozenset({"format_string", "printf"})
WHOLE: Final = frozenset({"integer", "long", "short", "byte"})


def size_of_call(node: Node) -> int:
    """Return how much a call makes, if one of its arguments says it."""
    name = function_of(node)
    if name == "sequence":
        return _length(node)
    if name in FORMATS:
        return _widest(node)
    if name in SIZES and node.name == "UnresolvedTableValuedFunction":
        raise ObjectionRaised(
            f"{name} is not accepted as a table", node, f"LATERAL VIEW {name}(…) t AS …"
        )
    if name not in SIZES or SIZES[name] >= len(node.children):
        return 1
    return abs(_constant(node, node.children[SIZES[name]]))


def _length(node: Node) -> int:
    numbers = [_constant(node, child) for child in node.children[:3]]
    if len(numbers) < 2:
        return 1
    step = numbers[2] if len(numbers) > 2 else 1
    return abs(numbers[1] - numbers[0]) // max(abs(step), 1) + 1


def _widest(node: Node) -> int:
    if not node.children or node.children[0].name != "Literal":
        raise ObjectionRaised("a format must be a constant", node, "write it down as text")
    digits = "".join(c if c.isdecimal() else " " for c in str(node.children[0].fields.get("value")))
    return max([1, *(int(number[:20]) for number in digits.split())])


def _constant(call: Node, node: Node) -> int:
    """Return a whole number that is written in the text, after the simplest arithmetic."""
    match node.name, node.children:
        case "Literal", []:
            text = node.fields.get("value")
            if node.fields.get("dataType") in WHOLE and isinstance(text, str):
                return int(text)
        case "UnaryMinus", [child]:
            return -_constant(call, child)
        case ("Add" | "Subtract" | "Multiply") as operator, [left, right]:
            one, other = _constant(call, left), _constant(call, right)
            return {"Add": one + other, "Subtract": one - other, "Multiply": one * other}[operator]
    message = f"{function_of(call)}: how much it makes must be a constant whole number"
    raise ObjectionRaised(message, call, f"write a number, {SIZE_MAX} at most")
