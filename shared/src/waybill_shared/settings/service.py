"""Settings that every service has. Each service adds its own; all are read from `WAYBILL_*`."""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.settings.hosts import HostSettings, Listed
from waybill_shared.settings.kafka import KafkaSettings

ORIGIN: Final = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?")


class ServiceSettings(KafkaSettings, HostSettings):
    topic_prefix: str = Field(
        default="waybill", description="of topics, groups, transactional ids and Redis keys"
    )
    host: str = Field(default="127.0.0.1", description="address that HTTP is served on")
    log_format: Literal["json", "console"] = "json"
    token_keys_file: Path = Field(
        default=Path(".waybill/keys.json"), description="the key ring that seals tokens"
    )

    open_tokens: bool = Field(
        default=False, description="who has a token may ask for its outcome without an API key"
    )
    cors_origins: Listed = Field(
        default=(), description="of web pages that may use this, such as https://shop.example"
    )

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if ORIGIN.fullmatch(origin) is None:
                raise ValueError(
                    f"{origin!r} is no origin: write https://shop.example or"
                    " http://localhost:3000, with no path; `*` is not allowed"
                )
        return origins

    @model_validator(mode="after")
    def _strangers_need_keys(self) -> Self:
        loopback = self.host == "localhost" or ip_address(self.host).is_loopback
        if not loopback and self.api_keys_file is None:
            raise ValueError(
                f"WAYBILL_HOST={self.host} is not loopback, and whoever reaches the port may do"
                " everything: set WAYBILL_API_KEYS_FILE to a file that `waybill keys new` has made"
            )
        return self

    def topic(self, name: str) -> str:
        return f"{self.topic_prefix}.{name}"

    def group(self, service: str) -> str:
        return f"{self.topic_prefix}.{service}"


Settings = TypeVar("Settings", bound=BaseSettings)


def read_settings(kind: type[Settings]) -> Settings:
    """Read the settings from the environment. Raise UserError with each variable that is wrong."""
    try:
        return kind()
    except ValidationError as error:
        raise UserError([_problem(each["loc"], each["msg"]) for each in error.errors()]) from error


def _problem(loc: tuple[int | str, ...], message: str) -> Problem:
    """Describe a problem of one variable, or of several together, which the message names
    itself.
    """
    variable = f"WAYBILL_{str(loc[0]).upper()}: " if loc else ""
    return Problem(message=variable + message.removeprefix("Value error, "))
