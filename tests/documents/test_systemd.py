"""The systemd units name real services, modules and settings, and give them their time to stop."""

import re
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from documents.test_containers import SETTINGS
from infra.nginx.render import ADDRESSES, CONFIG, RESOLVER, render
from waybill_local.services import SERVICES as LOCAL
from waybill_shared.contract.routes import SERVICES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "infra/systemd"
TEMPLATE = FOLDER / "waybill@.service"
DRIVERS = FOLDER / "waybill@stage_runner.service.d/drivers.conf"
PAGE = (ROOT / "docs/systemd.md").read_text(encoding="utf-8")


def unit(*files: Path) -> ConfigParser:
    """A unit with its drop-ins over it."""
    found = ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(files, encoding="utf-8")
    return found


def service(name: str) -> ConfigParser:
    return unit(TEMPLATE, DRIVERS) if name == "stage_runner" else unit(TEMPLATE)


def environment() -> dict[str, str]:
    lines = (FOLDER / "waybill.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("name", SERVICES)
def test_the_template_starts_every_service(name: str) -> None:
    command = service(name)["Service"]["ExecStart"].replace("%i", name).split()
    assert command[1:-1] == ["-P", "-m"]
    assert find_spec(f"{command[-1]}.__main__") is not None
    assert f"waybill@{name}" in PAGE


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_gets_the_time_that_it_needs_to_stop(name: str) -> None:
    needed = {each.name: each.stop_timeout_s for each in LOCAL}[name]
    assert int(service(name)["Service"]["TimeoutStopSec"]) > needed


def test_every_variable_is_a_setting_with_a_value_it_takes() -> None:
    given = {name.removeprefix("WAYBILL_").lower(): value for name, value in environment().items()}
    known = {field for settings in SETTINGS.values() for field in settings.model_fields}
    assert given.keys() <= known
    for settings in SETTINGS.values():
        settings.model_validate(
            {name: value for name, value in given.items() if name in settings.model_fields}
        )


def test_what_the_stage_runner_keeps_lies_where_its_unit_lets_it_write() -> None:
    state = "/var/lib/" + service("stage_runner")["Service"]["StateDirectory"]
    mine = state.replace("%i", "stage_runner")
    for name in ("STATE_FOLDER", "LAKEHOUSE", "SPARK_ARCHIVES"):
        assert environment()[f"WAYBILL_STAGE_RUNNER_{name}"].startswith(f"{mine}/")


def test_the_page_names_every_file() -> None:
    files = [path.name for path in FOLDER.rglob("*") if path.is_file()]
    assert not [name for name in files if name not in PAGE]


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_installed(name: str) -> None:
    members = re.search(r"waybill-\{(.+)\}", (FOLDER / "install.sh").read_text(encoding="utf-8"))
    assert members is not None
    assert name.replace("_", "-") in members[1].split(",")


def test_the_page_makes_the_gateway_of_one_host() -> None:
    """The `sed` of the page: both its replacements, as Python has them."""
    names, ports, here = re.findall(r"s/\((.+)\):\((.+)\)/(.+):\\2/", PAGE)[0]
    made = re.sub(rf"({names}):({ports})", rf"{here}:\2", CONFIG.read_text(encoding="utf-8"))
    listen, local = re.findall(r"s/listen (\S+)/listen (\S+)/", PAGE)[0]
    made = made.replace(f"listen {listen}", f"listen {local}")

    addresses = {name: f"127.0.0.1:{text.split(':')[1]}" for name, text in ADDRESSES.items()}
    assert made == render(addresses, listen="127.0.0.1:8080", resolver=RESOLVER)
