"""What a manifest says of keeping a table in order: which tasks, and how often."""

import re
from typing import TYPE_CHECKING, Final

from pydantic import Field, field_validator

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.fields import Strict
from waybill_shared.contract.token_life import TOKEN_LIFE

if TYPE_CHECKING:
    from waybill_shared.contract.manifest.model import Manifest

AGE: Final = re.compile(r"([1-9]\d{0,4}) ?(minute|hour|day)s?")
AGE_MS: Final = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
DAY_MS: Final = AGE_MS["day"]
MIB: Final = 1024 * 1024


def age_ms(text: str) -> int:
    found = AGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time in minutes, hours or days, such as `30 days`")
    return int(found[1]) * AGE_MS[found[2]]


class TableTask(Strict):
    every: str = "1 day"

    @field_validator("every")
    @classmethod
    def _is_an_age(cls, text: str) -> str:
        age_ms(text)
        return text

    @property
    def every_ms(self) -> int:
        return age_ms(self.every)


class ExpireSnapshots(TableTask):
    """Task that expires snapshots.

    The files that no snapshot needs any more are deleted by `removeOrphans`.
    """

    older_than: str = TOKEN_LIFE  # tokens name them
    keep: int = Field(default=1, ge=1, le=10_000)

    @field_validator("older_than")
    @classmethod
    def _is_old(cls, text: str) -> str:
        age_ms(text)
        return text


class Compact(TableTask):
    every: str = "1 hour"
    target_file_size: int = Field(default=64 * MIB, ge=MIB, le=1024 * MIB)


class RewriteManifests(TableTask):
    every: str = "1 hour"


class RemoveOrphans(TableTask):
    older_than: str = "3 days"

    @field_validator("older_than")
    @classmethod
    def _is_older_than_any_write(cls, text: str) -> str:
        if age_ms(text) < DAY_MS:
            raise ValueError(f"{text!r} is too short: what is being written now would be removed")
        return text


class Maintenance(Strict):
    """Tasks that are not named are not done."""

    expire_snapshots: ExpireSnapshots | None = None
    compact: Compact | None = None
    rewrite_manifests: RewriteManifests | None = None
    remove_orphans: RemoveOrphans | None = None

    @property
    def tasks(self) -> dict[str, TableTask]:
        """The tasks in the order in which they are best done, by the keys of the manifest."""
        named = {
            "compact": self.compact,
            "rewriteManifests": self.rewrite_manifests,
            "expireSnapshots": self.expire_snapshots,
            "removeOrphans": self.remove_orphans,
        }
        return {name: task for name, task in named.items() if task is not None}


def refuse_no_tasks(manifest: "Manifest", sink: str) -> None:
    """Raise UserError if the sink has no maintenance task."""
    names = [each.name for stage in manifest.stages for each in stage.sinks]
    found = manifest.sink(sink)
    if found is None:
        message, hint = f"there is no sink {sink}", f"its sinks: {', '.join(names)}"
    elif found.settings.maintenance_tasks is None:
        message = f"sink {sink} is of kind {found.kind}, which has no table to keep in order"
        hint = "only tables of Iceberg need it"
    elif not found.settings.maintenance_tasks:
        message = f"sink {sink}: its manifest names no task"
        hint = "say in the manifest what is to be done, as in maintenance: {compact: {}}"
    else:
        return
    raise UserError([Problem(message=message, path="sink", hint=hint)])
