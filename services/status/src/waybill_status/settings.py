"""Settings of status, in addition to those that every service has."""

from pydantic import Field

from waybill_shared.settings.redis import RedisSettings
from waybill_shared.settings.service import ServiceSettings
from waybill_shared.settings.webhooks import WebhookSettings


class Settings(ServiceSettings, RedisSettings, WebhookSettings):
    status_port: int = Field(default=8082, description="port that HTTP is served on")
    status_waiters_max: int = Field(
        default=20_000, description="requests held open at once; above it 429"
    )
    status_query_bytes_max: int = Field(
        default=4_000_000, description="of one query; a thousand tokens of 4 kB each"
    )
    status_feldera_hold_s: float = Field(
        default=10.0,
        ge=0,
        le=60,
        description="so long Feldera's own client is kept waiting for a completion status",
    )
    status_redis_timeout_s: float = Field(
        default=2.0, description="until an answer of redis counts as missing"
    )
