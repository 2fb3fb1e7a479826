"""The form of every answer that is not a success: RFC 9457. Serves nothing itself."""

from collections.abc import Mapping
from typing import Any, Final

PROBLEM_JSON = "application/problem+json"
_RETRY_AFTER = {"Retry-After": "1"}
HEADERS_OF: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"WWW-Authenticate": 'Bearer realm="waybill"'},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}


def problem_body(status: int, slug: str, detail: str, **members: object) -> dict[str, Any]:
    return {
        "type": f"urn:waybill:problem:{slug}",
        "title": slug.replace("_", " "),
        "status": status,
        "detail": detail,
        **members,
    }
