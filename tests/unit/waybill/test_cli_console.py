"""`waybill open`: the console in a browser, or its address where there is none."""

import json

import pytest

from unit.waybill.conftest import Command
from waybill.testing import ScriptedServer


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to show."""
    found: list[str] = []

    def remember(url: str) -> bool:
        found.append(url)
        return "nobody" not in url

    monkeypatch.setattr("webbrowser.open", remember)
    return found


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ((), "/"),
        (("orders",), "/p/orders"),
        (("a b/c",), "/p/a%20b%2Fc"),
        (("wb1.AWGunTmn-zo_K",), "/t/wb1.AWGunTmn-zo_K"),
        (("wb1",), "/p/wb1"),
    ],
)
def test_what_is_named_is_opened(
    server: ScriptedServer, command: Command, opened: list[str], words: tuple[str, ...], path: str
) -> None:
    told = command("open", *words)
    assert opened == [server.url + path]
    assert (told.exit_code, told.stdout) == (0, f"{server.url}{path}\n")


def test_without_a_browser_its_address_is_all_there_is(
    server: ScriptedServer, command: Command, opened: list[str]
) -> None:
    told = command("open", "nobody", "-o", "json")
    assert json.loads(told.stdout) == {"url": f"{server.url}/p/nobody"}
    assert "open this address in one" in told.stderr
    assert command("open", "").exit_code == 2
    assert len(opened) == 1
