"""Settings that every service has: what they refuse, and the fix that they name, as last words."""

from pathlib import Path

import pytest

from waybill_shared.access.authentication import keys_in_force
from waybill_shared.contract.errors import UserError
from waybill_shared.process.lifetime import run
from waybill_shared.settings.service import ServiceSettings, read_settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert ServiceSettings(host=host).api_keys_file is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_addresses_need_a_keys_file(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_HOST", host)
    with pytest.raises(UserError, match=r"WAYBILL_API_KEYS_FILE .* `waybill keys new`"):
        read_settings(ServiceSettings)
    monkeypatch.setenv("WAYBILL_API_KEYS_FILE", "keys.json")
    assert ServiceSettings().api_keys_file == Path("keys.json")


def test_variable_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_LOG_FORMAT", "xml")
    with pytest.raises(UserError, match=r"^WAYBILL_LOG_FORMAT: Input should be 'json'"):
        read_settings(ServiceSettings)


def test_what_must_be_corrected_is_a_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def main() -> None:
        settings = read_settings(ServiceSettings)
        keys_in_force(settings.api_keys_file)

    missing = tmp_path / "keys.json"
    monkeypatch.setenv("WAYBILL_API_KEYS_FILE", str(missing))
    assert run(main) == 2
    assert capsys.readouterr().err == (
        f"cannot run: the API keys file {missing} cannot be read: No such file or directory"
        " (`waybill keys new` makes one)\n"
    )
