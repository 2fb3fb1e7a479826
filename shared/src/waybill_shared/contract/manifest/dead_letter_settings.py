"""The model of where a manifest sends records that cannot be processed."""

import re

from pydantic import field_validator

from waybill_shared.contract.manifest.fields import Strict, Topic
from waybill_shared.contract.manifest.triggers import MS_PER_UNIT

BUDGET = re.compile(r"(\d{1,7}) per (?:([1-9]\d{0,3}) )?(second|minute|hour)s?")
BUDGET_MAX = 10_000  # a batch's dead records are in one message of a journal


class DeadLetterSettings(Strict):
    """The topic for records that a stage cannot process; beyond the budget the stage ends instead.

    Without a topic, those of each input go to a topic of its own, see `Manifest.dead_letter_topic`.
    """

    topic: Topic | None = None
    budget: str = "100 per 1 minute"

    @property
    def records(self) -> int:
        return self._parsed[0]

    @property
    def window_ms(self) -> int:
        return self._parsed[1]

    @property
    def _parsed(self) -> tuple[int, int]:
        found = BUDGET.fullmatch(self.budget)
        assert found is not None
        return int(found[1]), int(found[2] or 1) * MS_PER_UNIT[found[3]]

    @field_validator("budget")
    @classmethod
    def _is_a_budget(cls, text: str) -> str:
        found = BUDGET.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a budget, such as `100 per 1 minute`")
        if int(found[1]) > BUDGET_MAX:
            raise ValueError(f"{text!r} is too much: a budget is at most {BUDGET_MAX} records")
        return text
