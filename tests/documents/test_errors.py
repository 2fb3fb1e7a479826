"""One tree of errors for all that stands on the contract, and one for the SDK."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVERS = [ROOT / "shared/src", ROOT / "spark/src", *sorted((ROOT / "services").glob("*/src"))]
SDK = ROOT / "client/src/waybill"
BUILT_IN = {"BaseException", "Exception", "RuntimeError", "ValueError", "OSError", "LookupError"}


def roots(*folders: Path) -> list[str]:
    """The classes that begin a tree of their own."""
    return [
        node.name
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for node in classes(path)
        if node.bases and all(getattr(base, "id", None) in BUILT_IN for base in node.bases)
    ]


def classes(path: Path) -> Iterator[ast.ClassDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_all_errors_of_services_and_drivers_hang_on_one_root() -> None:
    assert roots(*SERVERS) == ["ContractError"]


def test_errors_of_the_sdk_have_a_root_of_their_own() -> None:
    assert roots(SDK) == ["WaybillError"]
