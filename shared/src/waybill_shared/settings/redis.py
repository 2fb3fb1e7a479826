"""Settings of an existing Redis: how it is reached, and as whom. Only who has a client has them."""

from pathlib import Path
from typing import Final, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from waybill_shared.redis.server import RedisServer
from waybill_shared.settings.kafka import PREFIX, variable
from waybill_shared.settings.pem import read_authorities

REDIS_URL: Final = (
    "WAYBILL_REDIS is no URL of Redis: it takes rediss://USER:PASSWORD@HOST:PORT/DB, redis://"
    " without TLS; signs in the password other than letters and digits are percent-encoded"
)


class RedisSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    redis: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="Redis or Valkey, by URL: rediss://USER:PASSWORD@HOST:PORT/DB",
        repr=False,
    )
    redis_ssl_ca_file: Path | None = Field(
        default=None, description="PEM: whom to trust; the machine's own authorities unless set"
    )

    @model_validator(mode="after")
    def _redis_settings_fit(self) -> Self:
        try:
            encrypted = RedisServer(url=self.redis).encrypted
        except ValueError:
            raise ValueError(REDIS_URL) from None  # the error's own text may hold the password
        if self.redis_ssl_ca_file is not None and not encrypted:
            raise ValueError(
                "WAYBILL_REDIS_SSL_CA_FILE is set, but WAYBILL_REDIS is a URL without TLS: make it"
                " rediss://… or unset the variable"
            )
        self.redis_server()
        return self

    def redis_server(self) -> RedisServer:
        authorities = read_authorities(variable("redis_ssl_ca_file"), self.redis_ssl_ca_file)
        return RedisServer(url=self.redis, authorities=authorities)
