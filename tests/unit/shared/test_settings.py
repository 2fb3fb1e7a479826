"""Settings that every service has: what they refuse, and the fix that they name."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from shared.settings import ServiceSettings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert ServiceSettings(host=host).api_keys_file is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_addresses_need_a_keys_file(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_HOST", host)
    with pytest.raises(ValidationError, match=r"WAYBILL_API_KEYS_FILE .* `waybill keys new`"):
        ServiceSettings()
    monkeypatch.setenv("WAYBILL_API_KEYS_FILE", "keys.json")
    assert ServiceSettings().api_keys_file == Path("keys.json")
