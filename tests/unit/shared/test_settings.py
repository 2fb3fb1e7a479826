"""Settings that every service has: what they refuse, and the fix that they name, as last words."""

from pathlib import Path

import pytest

from waybill_ingress.settings import Settings as IngressSettings
from waybill_local.gateway import Settings as GatewaySettings
from waybill_shared.access.authentication import keys_in_force
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.hosts import LOOPBACK_ONLY, AllowedHosts
from waybill_shared.process.lifetime import run
from waybill_shared.settings.hosts import HostSettings
from waybill_shared.settings.service import ServiceSettings, read_settings
from waybill_shared.settings.webhooks import WebhookSettings
from waybill_stage_runner.settings import Settings as RunnerSettings
from waybill_status.settings import Settings as StatusSettings
from waybill_token_tracker.settings import Settings as TrackerSettings


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


@pytest.mark.parametrize(
    "kind", [IngressSettings, RunnerSettings, TrackerSettings, StatusSettings, GatewaySettings]
)
def test_who_may_be_called_what_is_read_by_all_that_serve(
    kind: type[HostSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_settings(kind).hosts == LOOPBACK_ONLY
    monkeypatch.setenv("WAYBILL_ALLOWED_HOSTS", "Waybill.Example., token_tracker [2001:DB8:0::1]")
    assert read_settings(kind).hosts == AllowedHosts(
        frozenset({"waybill.example", "token_tracker", "2001:db8::1"})
    )


@pytest.mark.parametrize(
    "text", ["*", "*.example", "https://a.example", "a.example:8080", "a/b", "[a.example]", "."]
)
def test_what_is_no_host_is_refused_by_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_ALLOWED_HOSTS", text)
    with pytest.raises(UserError, match=r"^WAYBILL_ALLOWED_HOSTS: .* is no host: write waybill\."):
        read_settings(ServiceSettings)


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


def test_where_webhooks_may_be_is_read_by_both_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_WEBHOOKS_ALLOW", "hooks.internal, 10.1.0.0/16")
    monkeypatch.setenv("WAYBILL_WEBHOOKS_PORTS", "443, 9443")
    monkeypatch.setenv("WAYBILL_TOPIC_PREFIX", "ours")
    for settings in (IngressSettings(), StatusSettings()):
        rules = settings.webhook_rules
        assert rules.allowed.host("hooks.internal")
        assert rules.allowed.address("10.1.2.3")
        assert rules.ports == frozenset({443, 9443})
        assert settings.topic_prefix == "ours"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ALLOW", "10.1.0.1/16"),
        ("PORTS", "https"),
        ("PORTS", ""),
        ("PORTS", "0"),
        ("PORTS", "443,"),
    ],
)
def test_what_is_neither_a_place_nor_a_port_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"WAYBILL_WEBHOOKS_{name}", text)
    with pytest.raises(UserError, match=f"^WAYBILL_WEBHOOKS_{name}: "):
        read_settings(WebhookSettings)
