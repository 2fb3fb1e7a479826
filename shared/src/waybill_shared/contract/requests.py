"""Requests that may be sent again: who carries one out, and what was answered.

They are the messages of `waybill.requests` and `waybill.answers`.

A claim is no answer: it says only in which transaction the answer will be written, if there ever is
one.
"""

import re
from dataclasses import dataclass
from typing import Final

NOBODY: Final = ""
BY_ID: Final = "by id"
"""In place of an operation: what was done for this request is found by its `root`."""
ID = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClaim:
    """A claim to carry a request out.

    `who` is the hash of an Idempotency-Key and its owner, `request` that of what was asked. `after`
    is the claim that this one replaces, `root` the first of those. `operation` is the one that one
    of them has started, or BY_ID. Claims before `forgets_before` do not count for this one.
    """

    id: str
    who: str
    request: str
    at: int
    transactional_id: str
    after: str
    root: str
    operation: str
    forgets_before: int
    released: bool = False
    """Nothing was written, and the key is free again."""

    def __post_init__(self) -> None:
        _check(self.id, self.who, self.request, self.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswer:
    """The answer to the request of a claim.

    As long as its operation is only started, `status` is 0.
    """

    claim: str
    who: str
    at: int
    operation: str
    status: int
    headers: dict[str, str]
    body: bytes

    def __post_init__(self) -> None:
        _check(self.claim, self.who)


def _check(*ids: str) -> None:
    for each in ids:
        if not ID.fullmatch(each):
            raise ValueError(f"{each!r:.80} is no id: 32 hexadecimal digits are expected")
