"""What is wrong in a query, and the error that ends the search for it."""

from dataclasses import dataclass

from waybill_shared.contract.errors import ContractError
from waybill_spark.guard.trees import Node, Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A fault in a query, and the path to its node."""

    message: str
    hint: str = ""
    way: Way = ()


class ObjectionRaised(ContractError):
    def __init__(self, message: str, node: Node, hint: str = "") -> None:
        self.objection = Objection(message=message, hint=hint, way=node.way)


def function_of(node: Node) -> str:
    """Return the name of the function if the node is a call."""
    named = node.fields.get("name")
    words = named.get("funcName") if isinstance(named, dict) else node.words("name")
    return (node.words("nameParts") or words or "").lower()
