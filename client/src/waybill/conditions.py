"""What is wrong with a pipeline, as answers say it."""

from dataclasses import dataclass
from datetime import datetime

from waybill.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineCondition:
    """Something that is wrong with a pipeline, next to its phase. `kind` is `degraded`. `message`
    says what has happened, if the cause does not.
    """

    kind: str
    stage: str | None
    cause: str
    since: datetime | None
    hint: str | None
    message: str | None = None

    @classmethod
    def read(cls, fields: Fields) -> "PipelineCondition":
        return cls(
            kind=fields.text("kind"),
            stage=fields.text_or_none("stage"),
            cause=fields.text("cause"),
            since=fields.moment_or_none("since"),
            hint=fields.text_or_none("hint"),
            message=fields.text_or_none("message"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStuck:
    """Why a pipeline processes nothing now, and what to do."""

    cause: str
    hint: str | None

    @classmethod
    def read(cls, fields: Fields) -> "PipelineStuck":
        return cls(cause=fields.text("cause"), hint=fields.text_or_none("hint"))
