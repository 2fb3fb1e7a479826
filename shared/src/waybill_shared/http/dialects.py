"""The form of a refusal.

A foreign interface that is served here has errors of its own form, and its paths decide which. This
module decides nothing about what is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.responses import JSONResponse, Response

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import PROBLEM_JSON, headers_of, problem_body
from waybill_shared.http import feldera


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The form of all refusals at paths that begin with `prefix`; `render` is also given the path
    and the id of the request."""

    prefix: str
    render: Callable[[Refusal, str, str], Response]


def refuse(refusal: Refusal, *, path: str, request_id: str) -> Response:
    """Return the refusal in the form that callers of this path read."""
    dialect = next(each for each in DIALECTS if path.startswith(each.prefix))
    return dialect.render(refusal, path, request_id)


def _problem(refusal: Refusal, _: str, request_id: str) -> Response:
    """Return the refusal in the form of RFC 9457."""
    return JSONResponse(
        problem_body(refusal, request_id=request_id),
        status_code=refusal.slug.status,
        media_type=PROBLEM_JSON,
        headers=headers_of(refusal.slug),
    )


DIALECTS: Final[tuple[Dialect, ...]] = (
    Dialect(prefix=feldera.PREFIX, render=feldera.render),
    Dialect(prefix="", render=_problem),
)
"""The first one that fits counts: our own, which fits every path, stays the last."""
