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
    MOMENTS = "nobody: try again in a moment"
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
    BAD_IDEMPOTENCY_KEY = ("bad_idempotency_key", 400, Acts.CALLER,
        "`Idempotency-Key` is empty, too long, not printable, or sent more than once")
    BAD_IF_MATCH = ("bad_if_match", 400, Acts.CALLER,
        "`If-Match` names no generation")
    CLUSTER_UNKNOWN = ("cluster_unknown", 400, Acts.CALLER,
        "the positions are of another Kafka than ours")
    HTTP_ERROR = ("http_error", 400, Acts.CALLER,
        "the request has a form that is not accepted here")
    PARTITION_UNKNOWN = ("partition_unknown", 400, Acts.CALLER,
        "a position is in a partition that does not exist")
    POSITION_BEYOND_END = ("position_beyond_end", 400, Acts.CALLER,
        "the partition ends before a position: at `partition_end`")
    REQUEST_CUT_OFF = ("request_cut_off", 400, Acts.CALLER,
        "the connection ended before the end of the body")
    TOPIC_ID_UNKNOWN = ("topic_id_unknown", 400, Acts.CALLER,
        "a position has another id than the topic: it was created again, or is in another Kafka")
    TOPIC_NOT_AN_INPUT = ("topic_not_an_input", 400, Acts.CALLER,
        "a position is in a topic that the pipeline does not read; `known` are those it reads")
    KEY_EXPIRED = ("key_expired", 401, Acts.CALLER,
        "the API key has expired")
    KEY_MISSING = ("key_missing", 401, Acts.CALLER,
        "there is no header `Authorization: Bearer`")
    KEY_REFUSED = ("key_refused", 401, Acts.CALLER,
        "the API key is not valid here: misspelt, revoked, or of another Waybill")
    ORIGIN_REFUSED = ("origin_refused", 403, Acts.CALLER,
        "a web page of another site, without an API key; `WAYBILL_CORS_ORIGINS` lists those let in")
    SCOPE_MISSING = ("scope_missing", 403, Acts.CALLER,
        "the API key does not have the scope that this needs, `scope`; it has `scopes`")
    CONNECTOR_NOT_FOUND = ("connector_not_found", 404, Acts.CALLER,
        "the input has no connector of this name; `known` are those it has")
    DEAD_LETTER_NOT_FOUND = ("dead_letter_not_found", 404, Acts.CALLER,
        "the pipeline has no dead letter with this id")
    INPUT_NOT_FOUND = ("input_not_found", 404, Acts.CALLER,
        "the pipeline has no input of this name that accepts records; `known` are those it has")
    WATCH_NOT_FOUND = ("watch_not_found", 404, Acts.CALLER,
        "there is no watch with this id")
    NOT_FOUND = ("not_found", 404, Acts.CALLER,
        "nothing is served at this path")
    OPERATION_NOT_FOUND = ("operation_not_found", 404, Acts.CALLER,
        "there is no operation with this id")
    PIPELINE_NOT_FOUND = ("pipeline_not_found", 404, Acts.CALLER,
        "there is no such pipeline; `known` are those that exist")
    STAGE_NOT_FOUND = ("stage_not_found", 404, Acts.CALLER,
        "the pipeline has no stage of this name; `known` are those it has")
    TOPIC_NOT_FOUND = ("topic_not_found", 404, Acts.CALLER,
        "there is no such topic in the Kafka that Waybill uses")
    TOKEN_NOT_FOUND = ("token_not_found", 404, Acts.CALLER,
        "not a token of this Waybill: forged, shortened and foreign ones get the same answer")
    METHOD_NOT_ALLOWED = ("method_not_allowed", 405, Acts.CALLER,
        "this path accepts other methods")
    BEGINNING_NEEDED = ("beginning_needed", 409, Acts.CALLER,
        "topics that the pipeline reads were deleted and created again: restart it with `?from=`")
    KEYS_DIFFER = ("keys_differ", 409, Acts.CALLER,
        "another pipeline upserts into the table of a sink by other keys; nothing permits that")
    NAME_IN_USE = ("name_in_use", 409, Acts.CALLER,
        "another pipeline has this name, had it before, or is about to get it")
    NOTHING_TO_DELIVER = ("nothing_to_deliver", 409, Acts.CALLER,
        "the watch has no webhook, is still open, or has ended more than a week ago")
    PIPELINE_GONE = ("pipeline_gone", 409, Acts.CALLER,
        "the pipeline was deleted before this command was carried out")
    REQUEST_RUNNING = ("request_running", 409, Acts.MOMENTS,
        "a request with this `Idempotency-Key` is still being carried out")
    SINKS_GONE = ("sinks_gone", 409, Acts.CALLER,
        "the sinks that lack a dead record or their stage were removed, or it reads another topic")
    REPLAY_REPLACES = ("replay_replaces", 409, Acts.CALLER,
        "each batch replaces what a sink contains, and a replay would be a batch")
    REPLAY_NOT_CONFIRMED = ("replay_not_confirmed", 409, Acts.CALLER,
        "old rows may replace newer ones: confirm it with `yes: true`; `sinks` says where")
    REPLAYED_BEFORE = ("replayed_before", 409, Acts.CALLER,
        "a dead letter with another record than this edited one: confirm it with `again: true`")
    NOT_ALLOWED_NOW = ("not_allowed_now", 409, Acts.CALLER,
        "the phase of the pipeline does not allow it; `errors` say what it allows")
    REWIND_NOT_CONFIRMED = ("rewind_not_confirmed", 409, Acts.CALLER,
        "records would come again or be skipped: confirm it with `yes=true`; `errors` say which")
    SUPERSEDED = ("superseded", 409, Acts.CALLER,
        "a later command for the same pipeline replaced this one before it was done")
    DEAD_LETTER_GONE = ("dead_letter_gone", 410, Acts.CALLER,
        "a dead-letter topic does not hold it any more; `rejected` says since when it has records")
    RECORDS_LOST = ("records_lost", 410, Acts.CALLER,
        "at `/v0`, where `/v1` gives an outcome: records of the token, `lost`, will never arrive")
    TARGET_SHARED = ("target_shared", 409, Acts.CALLER,
        "another pipeline writes to the topic or table of a sink; `errors` say what permits it")
    RENAMED = ("renamed", 410, Acts.CALLER,
        "the pipeline is called otherwise now: `renamed_to`")
    TOKEN_EXPIRED = ("token_expired", 410, Acts.CALLER,
        "a genuine token that is too old")
    BODY_TOO_LARGE = ("body_too_large", 413, Acts.CALLER,
        "the body has more than `bytes_max` bytes, as it is sent or unpacked: send parts")
    TOKEN_TOO_LARGE = ("token_too_large", 413, Acts.CALLER,
        "the merged token would be too long: merge fewer")
    TOKEN_TOO_LONG = ("token_too_long", 413, Acts.CALLER,
        "longer than any token, or than a URL may be: then use `POST /v1/tokens/query`")
    TOO_MANY_DEAD_LETTERS = ("too_many_dead_letters", 413, Acts.CALLER,
        "more than `letters_max` ids, or than `bytes_max` bytes of records: send parts")
    TOO_MANY_RECORDS = ("too_many_records", 413, Acts.CALLER,
        "more than `records_max` records: send parts")
    TOO_MANY_TOKENS = ("too_many_tokens", 413, Acts.CALLER,
        "more than `tokens_max` tokens: send parts")
    UNSUPPORTED_ENCODING = ("unsupported_encoding", 415, Acts.CALLER,
        "the `Content-Encoding` is not one of those in `supported`")
    UNSUPPORTED_MEDIA_TYPE = ("unsupported_media_type", 415, Acts.CALLER,
        "the `Content-Type` is not one of those in `supported`")
    HOST_REFUSED = ("host_refused", 421, Acts.CALLER,
        "without API keys: `Host` is neither loopback nor in `WAYBILL_ALLOWED_HOSTS`")
    BODY_NOT_AVRO = ("body_not_avro", 422, Acts.CALLER,
        "the body is no Avro object container that fits the input; nothing was accepted")
    BODY_NOT_CSV = ("body_not_csv", 422, Acts.CALLER,
        "the body is no CSV with a header that fits the input; nothing of it was accepted")
    BODY_NOT_JSON = ("body_not_json", 422, Acts.CALLER,
        "the body is neither a JSON array nor JSON values in sequence; nothing was accepted")
    BODY_NOT_PACKED = ("body_not_packed", 422, Acts.CALLER,
        "the body is not what its `Content-Encoding` says, or is cut off; nothing was accepted")
    INVALID = ("invalid", 422, Acts.CALLER,
        "a manifest, a body or a parameter is wrong; `errors` say where and how to correct it")
    KEY_REUSED = ("key_reused", 422, Acts.CALLER,
        "another request was sent with this `Idempotency-Key`")
    NO_RECORDS = ("no_records", 422, Acts.CALLER,
        "the body holds no record")
    NOTHING_TO_PROPOSE = ("nothing_to_propose", 422, Acts.CALLER,
        "the topic is empty, or none of its newest records is a JSON object with fields")
    PLAN_INCOMPATIBLE = ("plan_incompatible", 422, Acts.CALLER,
        "the pipeline cannot be changed in this way; `errors` say why, and what is possible")
    RECORDS_DEAD_LETTERED = ("records_dead_lettered", 422, Acts.CALLER,
        "at `/v0`, where `/v1` gives an outcome: records of the token, `dead`, are dead letters")
    RECORDS_REFUSED_BY_KAFKA = ("records_refused_by_kafka", 422, Acts.CALLER,
        "Kafka never takes these records: for example, they have no key in a compacted topic")
    RECORDS_REJECTED = ("records_rejected", 422, Acts.CALLER,
        "no record fits the schema of this input, or with `atomic` not all; `rejected` says why")
    TOO_MANY_CHECKS = ("too_many_checks", 429, Acts.MOMENTS,
        "too many manifests are waiting for their check: send this one again")
    TOO_MANY_COMMANDS = ("too_many_commands", 429, Acts.LATER,
        "32 commands of the pipeline wait for one before them: send this one again as a new one")
    TOO_MANY_WATCHES = ("too_many_watches", 429, Acts.LATER,
        "the API key has `watches_max` open watches: wait until some end, or delete some")
    TOO_MANY_WAITERS = ("too_many_waiters", 429, Acts.LATER,
        "too many requests are waiting: ask without `wait`")
    INTERNAL = ("internal", 500, Acts.US,
        "a fault of the service; its log has the reason")
    WRITTEN_PERHAPS = ("written_perhaps", 500, Acts.CALLER,
        "at `/v0`, where `/v1` says 503: Kafka took records, or may have, and there is no token")
    SERVICE_UNREACHABLE = ("service_unreachable", 502, Acts.OPERATOR,
        "the service after the gateway cannot be reached")
    COMMAND_GIVEN_UP = ("command_given_up", 503, Acts.LATER,
        "the command was tried for too long: something is missing in Kafka or in a sink")
    INPUT_NOT_READY = ("input_not_ready", 503, Acts.MOMENTS,
        "the input is being set up, and nothing was written")
    NOT_AVAILABLE_NOW = ("not_available_now", 503, Acts.LATER,
        "Kafka or Redis does not answer, or this process has just started; `detail` says more")
    OUTCOME_UNKNOWN = ("outcome_unknown", 503, Acts.LATER,
        "the outcome cannot be known now, so it is `unknown`; `reason` says why")
    PIPELINE_BEHIND = ("pipeline_behind", 503, Acts.MOMENTS,
        "the generation in `If-Match` is not known here yet")
    PIPELINE_NOT_READY = ("pipeline_not_ready", 503, Acts.MOMENTS,
        "the pipeline was applied just now, or this process does not know all of them yet")
    TOPIC_RECREATED = ("topic_recreated", 503, Acts.OWNER,
        "the topic of the input was deleted or created again: use `waybill restart`")
    SERVICE_TIMEOUT = ("service_timeout", 504, Acts.OPERATOR,
        "the service after the gateway did not answer in time: it may have done what was asked")
    # fmt: on


def headers_of(slug: Slug) -> Mapping[str, str]:
    """Return the headers of an answer with this problem, in addition to those of its form."""
    return HEADERS_OF.get(slug.status, _RETRY_AFTER if slug.acts is Acts.MOMENTS else {})


def problem_body(refusal: "Refusal", **more: object) -> dict[str, Any]:
    return {
        "type": f"urn:waybill:problem:{refusal.slug}",
        "title": refusal.slug.replace("_", " "),
        "status": refusal.slug.status,
        "detail": refusal.detail,
        **refusal.members,
        **more,
    }
