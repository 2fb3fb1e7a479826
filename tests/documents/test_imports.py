"""No module needs itself through others; the import rules of pyproject.toml hold the rest."""

import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

RULES = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = RULES["tool"]["importlinter"]["root_packages"]


def test_no_module_needs_itself_through_others() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    needs = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the circle
