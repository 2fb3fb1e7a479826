"""The one table of problems: whatever an answer over HTTP refuses, by a slug that never changes.

docs/problems.md is made of it. The form of a problem is that of RFC 9457. Serves nothing itself.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from waybill_shared.contract.errors import Refusal

PROBLEM_JSON = "application/problem+json"
_RETRY_AFTER = {"Retry-After": "1"}
HEADERS_OF: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"WWW-Authenticate": 'Bearer realm="waybill"'},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}


class Acts(StrEnum):
    """Who must act. Of `MOMENTS` nothing was done yet, so that the same request can be repeated."""

    CALLER = "the caller"
    OPERATOR = "an operator"
    OWNER = "who runs the pipeline"
    MOMENTS = "nobody: it is a matter of moments"
    LATER = "nobody: try again later"
    US = "Waybill's developers"


class Slug(StrEnum):
    """Its name, the HTTP status, who acts, and what it says."""

    status: int
    acts: Acts
    meaning: str

    def __new__(cls, slug: str, status: int, acts: Acts, meaning: str) -> Self:
        made = str.__new__(cls, slug)
        made._value_ = slug
        made.status, made.acts, made.meaning = status, acts, meaning
        return made

    # fmt: off
    BAD_IF_MATCH = ("bad_if_match", 400, Acts.CALLER,
        "`If-Match` names no generation")
    CLUSTER_UNKNOWN = ("cluster_unknown", 400, Acts.CALLER,
        "the positions are of another Kafka than ours")
    HTTP_ERROR = ("http_error", 400, Acts.CALLER,
        "the request is not HTTP as it is taken here")
    PARTITION_UNKNOWN = ("partition_unknown", 400, Acts.CALLER,
        "a position is in a partition that is not there")
    POSITION_BEYOND_END = ("position_beyond_end", 400, Acts.CALLER,
        "a position is behind the end of its partition, which is `partition_end`")
    REQUEST_CUT_OFF = ("request_cut_off", 400, Acts.CALLER,
        "the caller left before the body's end")
    TOPIC_ID_UNKNOWN = ("topic_id_unknown", 400, Acts.CALLER,
        "a position names another id than the topic has: it was created anew, or is elsewhere")
    TOPIC_NOT_AN_INPUT = ("topic_not_an_input", 400, Acts.CALLER,
        "a position is in a topic that the pipeline does not read; `known` are those it reads")
    KEY_EXPIRED = ("key_expired", 401, Acts.CALLER,
        "the API key has expired")
    KEY_MISSING = ("key_missing", 401, Acts.CALLER,
        "there is no header `Authorization: Bearer`")
    KEY_REFUSED = ("key_refused", 401, Acts.CALLER,
        "the API key is none of those in force: mistyped, revoked, or of another place")
    SCOPE_MISSING = ("scope_missing", 403, Acts.CALLER,
        "the API key lacks the scope that this needs: `scope`; it has `scopes`")
    INPUT_NOT_FOUND = ("input_not_found", 404, Acts.CALLER,
        "the pipeline has no such input that takes records; `known` are those it has")
    NOT_FOUND = ("not_found", 404, Acts.CALLER,
        "nothing is served at this path")
    OPERATION_NOT_FOUND = ("operation_not_found", 404, Acts.CALLER,
        "that is the id of no operation")
    PIPELINE_NOT_FOUND = ("pipeline_not_found", 404, Acts.CALLER,
        "there is no such pipeline; `known` are those there are")
    TOKEN_NOT_FOUND = ("token_not_found", 404, Acts.CALLER,
        "no token of ours: forged, cut short or foreign look the same")
    METHOD_NOT_ALLOWED = ("method_not_allowed", 405, Acts.CALLER,
        "this path takes other methods")
    TOKEN_EXPIRED = ("token_expired", 410, Acts.CALLER,
        "a genuine token that is too old")
    BODY_TOO_LARGE = ("body_too_large", 413, Acts.CALLER,
        "the body has more than `bytes_max` bytes: send parts")
    TOKEN_TOO_LARGE = ("token_too_large", 413, Acts.CALLER,
        "the merged token would be too long to be carried: merge fewer")
    TOKEN_TOO_LONG = ("token_too_long", 413, Acts.CALLER,
        "longer than an address may be: ask by `POST /v1/tokens/query`; or than any token is")
    TOO_MANY_RECORDS = ("too_many_records", 413, Acts.CALLER,
        "more than `records_max` records: send parts")
    TOO_MANY_TOKENS = ("too_many_tokens", 413, Acts.CALLER,
        "more than `tokens_max` tokens: send parts")
    UNSUPPORTED_ENCODING = ("unsupported_encoding", 415, Acts.CALLER,
        "a `Content-Encoding`: send the body as it is")
    UNSUPPORTED_MEDIA_TYPE = ("unsupported_media_type", 415, Acts.CALLER,
        "another `Content-Type` than those in `taken`")
    BODY_NOT_JSON = ("body_not_json", 422, Acts.CALLER,
        "the body is no JSON array; nothing of it was taken")
    INVALID = ("invalid", 422, Acts.CALLER,
        "a manifest, a body or a parameter is wrong; `errors` say where and how to mend it")
    NO_RECORDS = ("no_records", 422, Acts.CALLER,
        "the body holds no record")
    RECORDS_REFUSED_BY_KAFKA = ("records_refused_by_kafka", 422, Acts.CALLER,
        "Kafka will take none of these records, as for a compacted topic those without a key")
    RECORDS_REJECTED = ("records_rejected", 422, Acts.CALLER,
        "none of the records is one of this input; `rejected` says why, one by one")
    TOO_MANY_WAITERS = ("too_many_waiters", 429, Acts.LATER,
        "too many requests are held: ask without waiting")
    INTERNAL = ("internal", 500, Acts.US,
        "a fault of the service, whose log has the reason")
    SERVICE_UNREACHABLE = ("service_unreachable", 502, Acts.OPERATOR,
        "the service behind the gateway is not there")
    INPUT_NOT_READY = ("input_not_ready", 503, Acts.MOMENTS,
        "the input is being set up, and nothing was written")
    NOT_AVAILABLE_NOW = ("not_available_now", 503, Acts.LATER,
        "Kafka or Redis does not answer, or this process has only just begun; `detail` says more")
    OUTCOME_UNKNOWN = ("outcome_unknown", 503, Acts.LATER,
        "nobody can judge the token now; `reason` says why, and the outcome is `unknown`")
    PIPELINE_BEHIND = ("pipeline_behind", 503, Acts.MOMENTS,
        "the generation that `If-Match` demands is not known here yet")
    PIPELINE_NOT_READY = ("pipeline_not_ready", 503, Acts.MOMENTS,
        "the pipeline was applied just now, or this process does not know all of them yet")
    TOPIC_RECREATED = ("topic_recreated", 503, Acts.OWNER,
        "the input's topic is gone or was created anew: `waybill restart` goes on with it")
    SERVICE_TIMEOUT = ("service_timeout", 504, Acts.OPERATOR,
        "the service behind the gateway did not answer in time: what was asked may be done")
    # fmt: on


def problem_body(refusal: "Refusal", **more: object) -> dict[str, Any]:
    return {
        "type": f"urn:waybill:problem:{refusal.slug}",
        "title": refusal.slug.replace("_", " "),
        "status": refusal.slug.status,
        "detail": refusal.detail,
        **refusal.members,
        **more,
    }
