"""Waybill as users and images have it: built wheels in an environment of their own, no clone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from waybill_local.packages import split
from waybill_local.pyspark import site_packages
from waybill_shared.contract.routes import SERVICES

ROOT = Path(__file__).parents[3]
UV = Path(sys.executable).with_name("uv")
TIMEOUT_S = 180.0
PATIENT = {"WAYBILL_STAGE_RUNNER_CHECK_TIMEOUT_S": "120"}  # other tests are at work meanwhile
NAMES = ("status", "ingress", "stage_runner", "kafka", "types", "logging", "uvicorn")
ORDER = '{"order_id": 1, "customer": "ada", "amount": 12.5}'


def ran(*command: str | Path, folder: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """The command, ended; nothing of this environment is in its way."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        command,
        cwd=folder,
        env={**kept, **settings},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def run(*command: str | Path, folder: Path, **settings: str) -> str:
    """What it says on stdout; it must end well."""
    done = ran(*command, folder=folder, **settings)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Constraints: the lock, with a wheel of each member and of PySpark, which no index has."""
    folder = tmp_path_factory.mktemp("wheels")
    run(UV, "build", "--offline", "--all-packages", "--wheel", "--out-dir", folder, folder=ROOT)
    pack_pyspark(folder)
    named = [f"{path.name.partition('-')[0]} @ {path.as_uri()}" for path in folder.glob("*.whl")]
    others, _ = split((ROOT / "requirements.lock").read_text())
    java = (ROOT / "requirements.java.lock").read_text()
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join((others, java, *named)))
    return constraints


def pack_pyspark(folder: Path) -> None:
    """Make a wheel of the PySpark that is installed here: `make sync` keeps none in uv's cache."""
    site = site_packages()
    (facts,) = site.glob("pyspark-*.dist-info")
    of_installer = {"INSTALLER", "REQUESTED", "direct_url.json", "uv_build.json"}
    files = [path for part in (site / "pyspark", facts) for path in sorted(part.rglob("*"))]
    name = f"{facts.name.removesuffix('.dist-info')}-py3-none-any.whl"
    with ZipFile(folder / name, "w") as wheel:
        for path in files:
            if path.name not in of_installer and "__pycache__" not in path.parts:
                wheel.write(path, path.relative_to(site))


def install(distribution: str, members: Path, folder: Path) -> Path:
    """The programs of a new environment with nothing but `distribution` and what it needs. Offline:
    `make sync` has left all else in uv's cache."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    programs = folder / "venv" / "bin"
    constraints = ("--constraints", members)
    build = ("--build-constraints", "requirements.build.txt")
    chosen = ("--offline", "--python", programs / "python", *constraints, *build)
    run(UV, "pip", "install", *chosen, distribution, folder=ROOT)
    return programs


@pytest.fixture(scope="module")
def waybill(members: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed command."""
    return install("waybill-client[local]", members, tmp_path_factory.mktemp("all")) / "waybill"


@pytest.fixture
def empty(waybill: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder for a stack, which is stopped at the end."""
    yield tmp_path
    run(waybill, "down", folder=tmp_path)


def test_stack_takes_a_record_all_the_way_beside_modules_of_any_name(
    waybill: Path, empty: Path
) -> None:
    """The folder is its user's: what lies there is never run, whatever it is called."""
    for name in NAMES:
        (empty / f"{name}.py").write_text("raise RuntimeError('a module of the user was run')")
    (empty / "shared").mkdir()
    (empty / "shared" / "__init__.py").touch()
    before = {path.name for path in empty.iterdir()}
    (example,) = waybill.parents[1].glob("lib/*/site-packages/waybill/examples/orders.yaml")

    run(waybill, "up", "--detach", folder=empty, **PATIENT)
    run(waybill, "apply", "-f", example, folder=empty)
    run(waybill, "wait", "orders", folder=empty)
    token = run(waybill, "send", "orders", "orders", ORDER, folder=empty).split()[0]
    outcome = run(waybill, "token", "wait", token, "--timeout", "120", folder=empty)
    assert outcome.startswith("complete")

    run(waybill, "down", folder=empty)
    assert {path.name for path in empty.iterdir()} == before | {".waybill"}


def test_stack_with_a_keys_file_answers_those_with_a_key(waybill: Path, empty: Path) -> None:
    file = {"WAYBILL_API_KEYS_FILE": str(empty / "keys.json")}
    key = run(waybill, "keys", "new", "--scope", "read", folder=empty, **file).strip()
    run(waybill, "up", "--detach", folder=empty, **file)

    refused = ran(waybill, "get", folder=empty)
    assert refused.returncode == 1
    assert "this needs an API key" in refused.stderr
    run(waybill, "get", folder=empty, WAYBILL_API_KEY=key)
    beyond = ran(waybill, "delete", "orders", "--yes", folder=empty, WAYBILL_API_KEY=key)
    assert "this needs scope admin" in beyond.stderr


def test_the_sdk_alone_brings_no_libraries_of_the_command(members: Path, tmp_path: Path) -> None:
    programs = install("waybill-client", members, tmp_path)
    run(programs / "python", "-c", "from waybill import Client", folder=tmp_path)
    packages = {path.name for path in tmp_path.glob("venv/lib/*/site-packages/*")}
    assert packages.isdisjoint({"typer", "rich", "confluent_kafka", "waybill_shared", "pyspark"})

    told = ran(programs / "waybill", "version", folder=tmp_path)

    assert told.returncode == 1
    assert told.stderr.strip().endswith("pip install 'waybill-client[cli]'")


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_brings_what_it_needs_and_only_the_runner_spark(
    service: str, members: Path, tmp_path: Path
) -> None:
    programs = install(f"waybill-{service}", members, tmp_path)
    run(programs / "python", "-c", f"import waybill_{service}.__main__", folder=tmp_path)
    spark = list(tmp_path.glob("venv/lib/*/site-packages/pyspark"))
    assert bool(spark) == (service == "stage_runner")
