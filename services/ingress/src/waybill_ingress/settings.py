"""Settings of ingress, in addition to those of every service."""

from pathlib import Path
from typing import Final

from pydantic import Field, field_validator

from waybill_ingress.core.bodies.packed import BodyLimits, UnpackLimits
from waybill_ingress.core.connectors.limits import FetchLimits, FileLimits
from waybill_ingress.core.rows import RowLimits
from waybill_shared.contract.addresses import allowed
from waybill_shared.settings.service import ServiceSettings
from waybill_shared.settings.webhooks import WebhookSettings

JSON_TIMES: Final = 4
"""A body's records may have so many times its size: as JSON each of them has the names of
columns.
"""


class Settings(ServiceSettings, WebhookSettings):
    ingress_port: int = Field(default=8081, description="port that HTTP is served on")
    ingress_body_bytes_max: int = Field(
        default=100_000_000, description="of one request's records, as they are sent"
    )
    ingress_unpacked_bytes_max: int = Field(
        default=100_000_000, description="of one request's records, when they are unpacked"
    )
    ingress_unpacked_ratio_max: int = Field(
        default=200, ge=1, description="how many times as large as it is packed a body may be"
    )
    ingress_records_max: int = Field(
        default=1_000_000, description="records in one request; with a key 10,000 at most"
    )
    ingress_record_bytes_max: int = Field(
        default=1_000_000, description="of one record with its key; brokers take 1,048,576"
    )
    ingress_delivery_timeout_s: int = Field(
        default=30, description="until a record that kafka does not acknowledge is given up"
    )
    ingress_queue_records_max: int = Field(
        default=100_000, description="records waiting for kafka, of all requests; above it 503"
    )
    ingress_queue_kbytes_max: int = Field(
        default=256 * 1024, description="kilobytes waiting for kafka, of all requests; above it 503"
    )

    ingress_partitions_max: int = Field(
        default=100, ge=1, description="that the topic of an input may be grown to"
    )
    ingress_keys_kept_h: int = Field(
        default=24, ge=1, le=24, description="hours that an Idempotency-Key is remembered"
    )
    ingress_keys_max: int = Field(
        default=1_000_000, ge=1, description="keys that are remembered; above it the oldest go"
    )
    ingress_key_patience_s: int = Field(
        default=30, ge=1, description="until the request of another process may be carried out here"
    )

    connectors_allow: str = Field(
        default="",
        description="hosts and networks that files may be fetched from, with commas; else only"
        " public addresses",
    )
    connectors_files: Path | None = Field(
        default=None, description="folder with the files that `file:` may name; else none"
    )
    connections_file: Path | None = Field(
        default=None, description="how object stores are reached: docs/connections.md"
    )
    connectors_bytes_max: int = Field(
        default=10_000_000_000, ge=1, description="of a file that is fetched, unpacked or not"
    )
    connectors_time_s: int = Field(
        default=6 * 3600, ge=1, description="for one reading of a file that is fetched"
    )

    @field_validator("connectors_allow")
    @classmethod
    def _is_allowed(cls, text: str) -> str:
        allowed(text)
        return text

    @property
    def fetch_limits(self) -> FetchLimits:
        return FetchLimits(
            allowed=allowed(self.connectors_allow),
            files=self.connectors_files,
            bytes_max=self.connectors_bytes_max,
            time_s=self.connectors_time_s,
        )

    @property
    def file_limits(self) -> FileLimits:
        unpacked = UnpackLimits(
            bytes_max=self.connectors_bytes_max, ratio_max=self.ingress_unpacked_ratio_max
        )
        return FileLimits(unpacked=unpacked, record_bytes_max=self.ingress_record_bytes_max)

    @property
    def row_limits(self) -> RowLimits:
        return RowLimits(
            records_max=self.ingress_records_max,
            record_bytes_max=self.ingress_record_bytes_max,
            bytes_max=JSON_TIMES * self.ingress_unpacked_bytes_max,
        )

    @property
    def body_limits(self) -> BodyLimits:
        unpacked = UnpackLimits(
            bytes_max=self.ingress_unpacked_bytes_max, ratio_max=self.ingress_unpacked_ratio_max
        )
        return BodyLimits(bytes_max=self.ingress_body_bytes_max, unpacked=unpacked)

    def producer_options(self) -> dict[str, object]:
        return {
            "client.id": "waybill-ingress",
            "delivery.timeout.ms": self.ingress_delivery_timeout_s * 1000,
            "message.max.bytes": self.ingress_record_bytes_max + 10_000,  # for the batch itself
            "queue.buffering.max.messages": self.ingress_queue_records_max,
            "queue.buffering.max.kbytes": self.ingress_queue_kbytes_max,
        }
