"""Every metric: its name, type, labels, who has it, what it says and when to worry.

A misspelt name does not type-check. docs/metrics.md is made of this by `tools.metrics_page`.
"""

from dataclasses import dataclass
from typing import Final, Literal

from waybill_shared.contract.routes import SERVICES
from waybill_shared.contract.token_life import TOKEN_LIFE

CounterName = Literal[
    "waybill_http_requests_total",
    "waybill_records_accepted_total",
    "waybill_records_rejected_total",
    "waybill_tokens_issued_total",
    "waybill_keyed_requests_total",
    "waybill_outcomes_total",
    "waybill_watches_ended_total",
    "waybill_delivery_attempts_total",
    "waybill_facts_applied_total",
    "waybill_batches_total",
    "waybill_batch_rows_total",
    "waybill_dead_letters_total",
    "waybill_slot_rebuilds_total",
    "waybill_lag_failures_total",
    "waybill_group_failures_total",
    "waybill_commands_total",
    "waybill_driver_starts_total",
    "waybill_driver_failures_total",
    "waybill_loop_retries_total",
    "waybill_messages_skipped_total",
]
GaugeName = Literal[
    "waybill_build_info",
    "waybill_ready",
    "waybill_waiters",
    "waybill_watches",
    "waybill_deliveries",
    "waybill_watch_age_seconds",
    "waybill_pipelines",
    "waybill_sql_guard_trusted",
    "waybill_pipeline_phase",
    "waybill_pipeline_blocked",
    "waybill_pipeline_degraded",
    "waybill_driver_attempts",
    "waybill_drivers",
    "waybill_lag_offsets",
    "waybill_last_commit_timestamp_seconds",
    "waybill_set_aside_ranges",
]
HistogramName = Literal[
    "waybill_http_request_seconds",
    "waybill_long_poll_seconds",
    "waybill_apply_delay_seconds",
    "waybill_batch_seconds",
    "waybill_driver_start_seconds",
]

HTTP: Final = ("ingress", "status")
TRACKER: Final = ("token_tracker",)
RUNNER: Final = ("stage_runner",)
SINK: Final = ("pipeline", "stage", "sink")
# Up to 10 s where somebody waits, up to minutes where a JVM or a table works.
SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LONG: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """`says` and `worry` are sentences: Prometheus and docs/metrics.md show them."""

    services: tuple[str, ...]
    labels: tuple[str, ...] = ()
    says: str
    worry: str
    buckets: tuple[float, ...] = SHORT

    @property
    def help(self) -> str:
        return f"{self.says} {self.worry}"


METRICS: Final[dict[CounterName | GaugeName | HistogramName, Metric]] = {
    "waybill_build_info": Metric(
        services=SERVICES,
        labels=("version",),
        says="1, under the version that runs.",
        worry="Two versions at once longer than a roll-out takes.",
    ),
    "waybill_ready": Metric(
        services=SERVICES,
        labels=("check",),
        says="1 when this check of /readyz passes (kafka, redis, …), else 0.",
        worry="0 for more than a minute: /readyz says why.",
    ),
    "waybill_loop_retries_total": Metric(
        services=(*TRACKER, *RUNNER),
        says="Rounds of the main loop that failed because of Kafka or Redis; each is tried again.",
        worry="When it keeps growing.",
    ),
    "waybill_messages_skipped_total": Metric(
        services=SERVICES,
        labels=("topic",),
        says="Messages of our own topics that could not be read and were skipped.",
        worry="Always: somebody else writes there, or a newer version does. The log has the place.",
    ),
    "waybill_http_requests_total": Metric(
        services=HTTP,
        labels=("route", "method", "status"),
        says="Requests that were answered.",
        worry="More than one percent with 5xx; 503 of a token is the outcome `unknown`.",
    ),
    "waybill_http_request_seconds": Metric(
        services=HTTP,
        labels=("route", "method"),
        says="From a request to the start of its answer, without requests that wait.",
        worry="p99 above a second: Kafka or Redis is slow.",
    ),
    "waybill_records_accepted_total": Metric(
        services=("ingress",),
        labels=("pipeline", "input"),
        says="Records over HTTP that Kafka acknowledged.",
        worry="No growth where there should be some.",
    ),
    "waybill_records_rejected_total": Metric(
        services=("ingress",),
        labels=("pipeline", "input"),
        says="Records over HTTP that the schema of their input refuses.",
        worry="A sudden increase: a producer and a manifest do not fit together.",
    ),
    "waybill_tokens_issued_total": Metric(
        services=("ingress",),
        labels=("born",),
        says="Tokens made, by what they were made from (records, positions, input, connector,"
        " merge, replay).",
        worry="Never by itself.",
    ),
    "waybill_keyed_requests_total": Metric(
        services=("ingress",),
        labels=("result",),
        says="Writes with an Idempotency-Key: carried_out, repeated, running (409), reused (422).",
        worry="Much `repeated` or `running`: clients do not get their answers in time. `reused`: a"
        " client gives one key to several requests.",
    ),
    "waybill_outcomes_total": Metric(
        services=("status",),
        labels=("outcome",),
        says="Outcomes that were answered; a token that is asked twice counts twice.",
        worry="`lost`: records will never be processed. `unknown`: Redis or the tracker is away.",
    ),
    "waybill_waiters": Metric(
        services=("status",),
        says="Open long polls and event streams.",
        worry="Near WAYBILL_STATUS_WAITERS_MAX: above it, requests get 429.",
    ),
    "waybill_watches": Metric(
        services=("status",),
        says="Open watches that this process owns; all processes together have all.",
        worry="Each takes some memory, and an answer when its pipeline commits.",
    ),
    "waybill_watch_age_seconds": Metric(
        services=("status",),
        says="How long the oldest watch with a final token has no event yet.",
        worry="More than seconds: `waybill.status` cannot be written.",
    ),
    "waybill_watches_ended_total": Metric(
        services=("status",),
        labels=("ended_as",),
        says="Watches that have ended, by how they ended.",
        worry=f"`expired`: tokens not final in {TOKEN_LIFE}. `lost`: records will never come.",
    ),
    "waybill_deliveries": Metric(
        services=("status",),
        says="Events that are on their way to webhooks, of which this process takes care.",
        worry="More and more: webhooks do not answer; each is tried for 24 hours.",
    ),
    "waybill_delivery_attempts_total": Metric(
        services=("status",),
        labels=("then",),
        says="Attempts to send an event to a webhook, by how the delivery was then.",
        worry="`failed`: given up. `due`: it did not take the event, and is tried again.",
    ),
    "waybill_long_poll_seconds": Metric(
        services=("status",),
        labels=("outcome",),
        says="How long long polls waited, by the outcome that they ended with.",
        worry="p95 of `complete` above what your users accept; `in_progress` is a time-out.",
        buckets=LONG,
    ),
    "waybill_facts_applied_total": Metric(
        services=TRACKER,
        labels=("kind",),
        says="What the tracker has read: definitions, commits, dead letters, beats of runners.",
        worry="No growth while pipelines run: outcomes are then `unknown` or late.",
    ),
    "waybill_apply_delay_seconds": Metric(
        services=TRACKER,
        says="From a sink's commit to the slot in memory that shows it.",
        worry="p99 above a second: the tracker or its Kafka lags.",
    ),
    "waybill_slot_rebuilds_total": Metric(
        services=TRACKER,
        says="Slots that Redis had lost, or of which it had an old copy; each is written again.",
        worry="Growth without a restart of Redis: it evicts keys, or two environments share it.",
    ),
    "waybill_group_failures_total": Metric(
        services=TRACKER,
        says="Consumer groups that could not be written or deleted. Batches are not affected.",
        worry="When it keeps growing: Kafka's own tools show too much lag. The log says why.",
    ),
    "waybill_lag_failures_total": Metric(
        services=TRACKER,
        says="Failed attempts to read where topics end; there is one attempt a second.",
        worry="When it keeps growing: until it works again, lag has no series. The log says why.",
    ),
    "waybill_lag_offsets": Metric(
        services=TRACKER,
        labels=SINK,
        says="How many offsets of its input topics a stage has still to bring into this sink."
        " No series where a topic does not answer or is deleted.",
        worry="Growth; or above 0 while there are no commits.",
    ),
    "waybill_last_commit_timestamp_seconds": Metric(
        services=TRACKER,
        labels=SINK,
        says="When the newest batch was committed in this sink; age = time() minus this.",
        worry="Old while lag is above 0. Without new records there is nothing to commit.",
    ),
    "waybill_set_aside_ranges": Metric(
        services=TRACKER,
        labels=(*SINK, "reason"),
        says="Ranges of offsets that will never be processed: their tokens end as `lost`.",
        worry="Any growth: retention, or topics that were deleted or created again.",
    ),
    "waybill_dead_letters_total": Metric(
        services=TRACKER,
        labels=("pipeline", "stage", "reason"),
        says="Records that went to a dead-letter topic; a restart counts the last seconds again.",
        worry="Any growth: `waybill dlq list` says which records, and why.",
    ),
    "waybill_batches_total": Metric(
        services=TRACKER,
        labels=SINK,
        says="Batches committed; a restart of the tracker counts the last seconds again.",
        worry="No growth while there is lag.",
    ),
    "waybill_batch_rows_total": Metric(
        services=TRACKER,
        labels=SINK,
        says="Rows that those batches wrote.",
        worry="No growth while records are accepted: a query filters all of them out.",
    ),
    "waybill_batch_seconds": Metric(
        services=TRACKER,
        labels=SINK,
        says="From the start of a batch to its commit in this sink.",
        worry="Above the trigger's interval: the stage is too slow for its trigger.",
        buckets=LONG,
    ),
    "waybill_pipelines": Metric(
        services=RUNNER,
        says="Pipelines that this runner is responsible for.",
        worry="0 in all runners while pipelines exist.",
    ),
    "waybill_sql_guard_trusted": Metric(
        services=RUNNER,
        says="1 where queries are trusted (WAYBILL_STAGE_RUNNER_SQL_GUARD), else 0.",
        worry="1 where others than its operators may apply a manifest.",
    ),
    "waybill_pipeline_phase": Metric(
        services=RUNNER,
        labels=("pipeline", "phase", "fault"),
        says="1 under the phase in which a pipeline is; its other phases have no series. `fault`:"
        " user, external or internal, if an error is the reason of the phase; else empty.",
        worry="Failed, above all if no user is at fault; Starting or Recovering for minutes.",
    ),
    "waybill_pipeline_blocked": Metric(
        services=RUNNER,
        labels=("pipeline", "blocked_by"),
        says="1 while a pipeline waits for this.",
        worry="For minutes: somebody's transaction is left open, or a Spark cluster is full.",
    ),
    "waybill_pipeline_degraded": Metric(
        services=RUNNER,
        labels=("pipeline", "cause"),
        says="1 while a pipeline is degraded for this cause; `waybill describe` names the stage.",
        worry="1: what runs does not do its work as usual.",
    ),
    "waybill_drivers": Metric(
        services=RUNNER,
        labels=("state",),
        says="Driver processes: starting, ready (spare), checking, running, ending.",
        worry="0 `ready` for minutes where spares are wanted: no memory or no CPU for one.",
    ),
    "waybill_driver_attempts": Metric(
        services=RUNNER,
        labels=("pipeline",),
        says="Failed starts in a row; 0 again after two healthy minutes. 20 crashes: Failed.",
        worry="Above 3.",
    ),
    "waybill_driver_starts_total": Metric(
        services=RUNNER,
        labels=("pipeline", "reason"),
        says="Runs that were given to a driver; `attempt` is another one after a failure.",
        worry="`attempt` that keeps growing: a crash loop.",
    ),
    "waybill_driver_failures_total": Metric(
        services=RUNNER,
        labels=("pipeline", "domain"),
        says="Drivers that ended with a failure, by its cause (user, external, internal).",
        worry="`user`: the pipeline has stopped and somebody must act.",
    ),
    "waybill_driver_start_seconds": Metric(
        services=RUNNER,
        says="From when a run was wanted to its running stages, without its time in line.",
        worry="p95 above a minute: no spare driver is ready, and CPU or memory is short.",
        buckets=LONG,
    ),
    "waybill_commands_total": Metric(
        services=RUNNER,
        labels=("action", "state"),
        says="Commands (apply, start, stop, …) that ended, done or failed.",
        worry="`failed` that nobody expects.",
    ),
}
