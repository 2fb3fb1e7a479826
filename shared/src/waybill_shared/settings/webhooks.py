"""Where webhooks may be. Both who takes a URL and who sends to it check this."""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from waybill_shared.contract.addresses import allowed
from waybill_shared.contract.webhooks import WebhookRules
from waybill_shared.settings.kafka import PREFIX

PORT_MAX = 65_535


class WebhookSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    webhooks_allow: str = Field(
        default="",
        description="hosts and networks that webhooks may be at, with commas, also over http and at"
        " any port; else only public addresses over https",
    )
    webhooks_ports: str = Field(
        default="443,8443", description="ports that webhooks may be at, with commas"
    )

    @field_validator("webhooks_allow")
    @classmethod
    def _is_allowed(cls, text: str) -> str:
        allowed(text)
        return text

    @field_validator("webhooks_ports")
    @classmethod
    def _are_ports(cls, text: str) -> str:
        if not all(0 < port <= PORT_MAX for port in _ports(text)):
            raise ValueError(f"{text!r:.100} are no ports: write 443,8443")
        return text

    @property
    def webhook_rules(self) -> WebhookRules:
        ports = frozenset(_ports(self.webhooks_ports))
        return WebhookRules(allowed=allowed(self.webhooks_allow), ports=ports)


def _ports(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]
