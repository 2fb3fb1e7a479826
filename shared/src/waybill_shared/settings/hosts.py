"""Who may call a service, and by which names: settings of all that serves HTTP."""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from waybill_shared.contract.hosts import AllowedHosts, read_allowed_hosts
from waybill_shared.settings.kafka import PREFIX


def _split(given: object) -> object:
    return given.replace(",", " ").split() if isinstance(given, str) else given


Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Words with commas."""


class HostSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    api_keys_file: Path | None = Field(
        default=None, description="the API keys of callers; without it only loopback is served"
    )
    allowed_hosts: Listed = Field(
        default=(),
        description="names that it may be called by without API keys, other than 127.0.0.1,"
        " localhost and [::1]; with commas",
    )

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        read_allowed_hosts(words)
        return words

    @property
    def hosts(self) -> AllowedHosts:
        """Whom it answers to where there are no API keys."""
        return read_allowed_hosts(self.allowed_hosts)
