"""What the documents name is there: links, files, and symbols of the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from waybill_shared.contract.words import EventType

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "client", "console", "docs", "examples", "infra", "schemas", "services", "shared", "spark",
    "tests",
)  # fmt: skip
SOURCES = [ROOT / f"{member}/src" for member in ("shared", "spark", "client", "infra/local")]
SOURCES += sorted((ROOT / "services").glob("*/src"))
PACKAGES = {package.name: package for source in SOURCES for package in source.iterdir()}
TOPICS = {f"waybill.{path.stem}" for path in (ROOT / "schemas/topics").glob("*.yaml")}
TOPICS |= {str(kind) for kind in EventType} | {"waybill.cut"}  # of events in one of them
MADE = {"state.json", "keys.json", "spec.json", "metadata.json", "connections.yaml"}
"""By a running stack."""
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./-]+\.(py|yaml|yml|avsc|md|toml|lock|in|properties|html|js)")
DECISIONS = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
LINES_MAX = {"README.md": 120, "ARCHITECTURE.md": 265, "CHANGELOG.md": 60}
STATUS = re.compile(r"(Accepted|Superseded by \[\d+\]\(\S+\)), \d{4}-\d\d-\d\d\.")
LAYERS = ("adapters", "app", "core")
LAYER = re.compile(r"\b((?:adapters|app|core)(?:/\w+)*) \(([^)]+)\)")
SYMBOL = re.compile(r"(\w+(?:\.\w+)+)(?:\(\))?")


def documents() -> list[Path]:
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")]
    found = [*ROOT.glob("*.md"), *inside]
    return sorted(path for path in found if "/." not in f"/{_named(path)}")


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", documents(), ids=_named)
def test_every_link_leads_somewhere(document: Path) -> None:
    links = LINK.findall(FENCED.sub("", document.read_text(encoding="utf-8")))
    inside = [link.partition("#")[0] for link in links if "://" not in link]

    missing = [link for link in inside if link and not (document.parent / link).exists()]

    assert not missing, f"{document.name} links to what is not there"


@pytest.mark.parametrize("document", documents(), ids=_named)
def test_every_named_file_and_symbol_exists(document: Path) -> None:
    missing = [text for text in _code(document) if not _exists(text)]

    assert not missing, f"{document.name} names what is not there"


def test_every_decision_has_its_status_and_its_three_parts() -> None:
    for document in DECISIONS:
        text = document.read_text(encoding="utf-8")
        assert STATUS.fullmatch(text.splitlines()[2]), document.name
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences"], document.name


@pytest.mark.parametrize(("name", "lines_max"), LINES_MAX.items())
def test_what_everybody_reads_is_short(name: str, lines_max: int) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= lines_max, f"{name}: move details to a page in docs/"


@pytest.mark.parametrize("service", sorted(path.name for path in (ROOT / "services").iterdir()))
def test_the_page_of_a_service_names_all_its_modules(service: str) -> None:
    page = (ROOT / f"services/{service}/README.md").read_text(encoding="utf-8")
    named = {layer: sorted(modules.split(", ")) for layer, modules in LAYER.findall(page)}

    package = PACKAGES[f"waybill_{service}"]
    there: dict[str, list[str]] = {}
    for layer in LAYERS:
        for path in sorted((package / layer).rglob("[!_]*.py"), key=lambda path: path.stem):
            folder = path.parent.relative_to(package).as_posix()
            there.setdefault(folder, []).append(path.stem)
    assert named == {folder: there[folder] for folder in there if folder in {*named, *LAYERS}}


@pytest.mark.parametrize("folder", ["docs", "docs/adr"])
def test_every_page_stands_in_the_index_once(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / folder).glob("*.md")} - {"README.md"}
    listed = [link for link in LINK.findall(index) if "/" not in link]
    assert sorted(listed) == sorted(pages)


def test_the_index_calls_decisions_by_their_titles() -> None:
    index = (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")
    titles = [page.read_text(encoding="utf-8").splitlines()[0] for page in DECISIONS]
    assert not [title for title in titles if f"[{title.removeprefix('# ')}](" not in index]


def _code(document: Path) -> Iterator[str]:
    text = COMMENT.sub("", FENCED.sub("", document.read_text(encoding="utf-8")))
    yield from CODE.findall(text)


def _exists(text: str) -> bool:
    if FILE.fullmatch(text):
        name = text.removeprefix("./")
        return Path(name).name in MADE or any(path.endswith(f"/{name}") for path in _files())
    found = SYMBOL.fullmatch(text)
    if found is None or text in TOPICS or found[1].split(".")[0] not in PACKAGES:
        return True
    return _is_symbol(found[1].split("."))


@cache
def _files() -> tuple[str, ...]:
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return tuple(f"/{_named(path)}" for path in [*ROOT.iterdir(), *inside] if path.is_file())


def _is_symbol(parts: list[str]) -> bool:
    at = PACKAGES[parts[0]]
    for number, part in enumerate(parts[1:], start=1):
        if (at / part).is_dir():
            at = at / part
            continue
        module = at / f"{part}.py"
        names = parts[number + 1 :] if module.is_file() else parts[number:]
        source = module if module.is_file() else at / "__init__.py"
        return _defines(ast.parse(source.read_text(encoding="utf-8")).body, names)
    return True


def _defines(body: list[ast.stmt], names: list[str]) -> bool:
    if not names:
        return True
    for node in body:
        if names[0] in _names_of(node):
            inner = node.body if isinstance(node, ast.ClassDef) else []
            return _defines(inner, names[1:])
    return False


def _names_of(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.ImportFrom():
            return [alias.asname or alias.name for alias in node.names]
        case _:
            return []
