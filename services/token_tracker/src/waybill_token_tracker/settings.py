"""Settings of the token tracker."""

from pydantic import Field

from waybill_shared.settings.service import ServiceSettings


class TokenTrackerSettings(ServiceSettings):
    token_tracker_port: int = Field(default=8083, description="HTTP: health and metrics only")
    token_tracker_snapshot_interval_s: float = Field(
        default=600.0, gt=0, description="how long a commit may be in no snapshot of its pipeline"
    )
