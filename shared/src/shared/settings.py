"""Settings that every service has. Each service adds its own; all are read from `WAYBILL_*`."""

from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_TENANT = "default"


class ServiceSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="WAYBILL_", frozen=True, extra="ignore")

    kafka: str = Field(default="127.0.0.1:9092", description="bootstrap servers")
    redis: str = Field(default="redis://127.0.0.1:6379/0", description="Redis or Valkey, by URL")
    topic_prefix: str = Field(
        default="waybill", description="of topics, groups, transactional ids and Redis keys"
    )
    host: str = Field(default="127.0.0.1", description="address that HTTP is served on: loopback")
    log_format: Literal["json", "console"] = "json"
    token_keys_file: Path = Field(
        default=Path(".waybill/keys.json"), description="the key ring that seals tokens"
    )

    @field_validator("host")
    @classmethod
    def _host_is_loopback(cls, host: str) -> str:
        if host == "localhost" or ip_address(host).is_loopback:
            return host
        raise ValueError(f"{host} is not loopback, and without authentication nothing else is safe")

    def topic(self, name: str) -> str:
        return f"{self.topic_prefix}.{name}"

    def group(self, service: str) -> str:
        return f"{self.topic_prefix}.{service}"
