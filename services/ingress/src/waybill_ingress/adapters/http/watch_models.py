"""What is sent to open a watch, as types."""

import json
from typing import Final, Self

from pydantic import Field, field_validator, model_validator

from waybill_ingress.adapters.http.models import StrictRequest
from waybill_shared.contract.token_views import ALL, WantedView
from waybill_shared.contract.tokens import CHARACTERS_MAX
from waybill_shared.contract.webhooks import read_secret, read_target
from waybill_shared.http.examples import with_example

LABELS_BYTES_MAX: Final = 1_000


class WebhookRequest(StrictRequest):
    url: str = Field(min_length=1, description="https, at a public address; no redirects")
    secret: str | None = Field(
        default=None,
        description="`whsec_` and 24 to 64 bytes in Base64; else one is made, and shown once",
    )

    @field_validator("url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        read_target(url)
        return url

    @field_validator("secret")
    @classmethod
    def _is_secret(cls, secret: str | None) -> str | None:
        if secret is not None:
            read_secret(secret)
        return secret


class WatchRequest(StrictRequest):
    """A token, which may be a merged one of 10,000."""

    model_config = with_example("ingress/watch_request")

    token: str = Field(min_length=1, max_length=CHARACTERS_MAX)
    labels: dict[str, str] = Field(
        default_factory=dict, description="sent with the event; 1,000 bytes at most, as JSON"
    )
    view: WantedView = Field(
        default=ALL, description="what is asked of the token, if not all of its way"
    )
    webhook: WebhookRequest | None = Field(
        default=None, description="where the event is sent to, signed, until it is accepted"
    )

    @model_validator(mode="after")
    def _has_short_labels(self) -> Self:
        size = len(json.dumps(self.labels, ensure_ascii=False).encode())
        if size > LABELS_BYTES_MAX:
            raise ValueError(f"labels have {size} bytes, and {LABELS_BYTES_MAX} is the most")
        return self
