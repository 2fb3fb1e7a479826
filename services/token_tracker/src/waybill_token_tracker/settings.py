"""Settings of the token tracker, in addition to those that every service has."""

from pydantic import Field

from waybill_shared.settings.redis import RedisSettings
from waybill_shared.settings.service import ServiceSettings
from waybill_token_tracker.core.snapshots import SnapshotRule


class Settings(ServiceSettings, RedisSettings):
    token_tracker_port: int = Field(default=8083, description="HTTP: health and metrics only")
    token_tracker_snapshot_interval_s: float = Field(
        default=600.0, gt=0, description="how long a commit may be in no snapshot of its pipeline"
    )

    @property
    def snapshot_rule(self) -> SnapshotRule:
        return SnapshotRule(age_ms_max=int(self.token_tracker_snapshot_interval_s * 1000))
