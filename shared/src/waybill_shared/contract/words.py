"""The words of answers, events, metrics and errors, each with its meaning: docs/words.md, the API's
descriptions and console/meanings.js are made of this. Messages and slots have them as text, so that
a word of a newer version is passed on unharmed.
"""

from waybill_shared.contract.token_life import TOKEN_LIFE
from waybill_shared.contract.word import Word


class OutcomeKind(Word):
    """Outcomes.

    `outcome` of a token, and of each part of a merged one.
    """

    COMPLETE = "complete", "all of it is committed in every sink at the end of the pipeline; final"
    DEAD_LETTERED = (
        "dead_lettered",
        "none of it is missing, and some of it is in a dead-letter topic: `dead` says what; final",
    )
    LOST = (
        "lost",
        "some of it will never be processed; `lost` says what, and why; final, but it may grow",
    )
    IN_PROGRESS = "in_progress", "not all of it has arrived; `stages` says what is still to come"
    UNKNOWN = "unknown", "it cannot be known now: `reason` says why; ask again"


class UnknownReason(Word):
    """Why an outcome is unknown.

    `reason` of an outcome.
    """

    REDIS_AWAY = "redis_away", "Redis does not answer"
    SLOT_MISSING = (
        "slot_missing",
        "Redis holds nothing of the pipeline that was written since Redis started",
    )
    NO_DEFINITION = "no_definition", "the tracker has not read yet what the pipeline consists of"
    GENERATION_BEHIND = (
        "generation_behind",
        "the token is of a later generation of the pipeline than the tracker has read",
    )
    TRACKER_SILENT = (
        "tracker_silent",
        "not all of it had arrived, and the tracker has confirmed nothing for 5 s",
    )
    NOTHING_REQUIRED = (
        "nothing_required",
        "the tracker knows of no sink that is to have the records of the token",
    )
    PIPELINE_NOT_KNOWN_YET = (
        "pipeline_not_known_yet",
        "this process of status does not know the pipeline of the token yet",
    )
    SINK_CAME_LATER = (
        "sink_came_later",
        "its rows reached the next pipeline before a sink there was added, which does not get them",
    )
    BATCH_FORGOTTEN = (
        "batch_forgotten",
        "which batches have its rows is not remembered any more, so nobody knows where they went",
    )
    DEAD_LETTERS_MISSING = (
        "dead_letters_missing",
        "a stage has passed records in a dead-letter topic that were not reported to the tracker",
    )


class DeadReason(Word):
    """Why a record is in a dead-letter topic.

    `reason` in `dead` of an outcome, and of `waybill_dead_letters_total`.
    """

    MALFORMED = "malformed", "it does not fit the schema of its input"
    VIOLATED = "violated", "it breaks a rule of its input; `rule` says which"
    FAILED = "failed", "the queries of a stage end with an error at it"
    REFUSED = "refused", "a sink does not take its row; `sink` says which"
    PUT_BY_OPERATOR = "put_by_operator", "a person has put it there: the message says why, and who"


class LossReason(Word):
    """Why records will never be processed.

    `reason` in `lost` of an outcome, and of `waybill_set_aside_ranges`.
    """

    BEFORE_START = (
        "before_start",
        "they lie before the offset at which the pipeline, a later stage or a later sink began",
    )
    TOPIC_RECREATED = (
        "topic_recreated",
        "their topic was deleted and created again before they were read",
    )
    TOPIC_DELETED = "topic_deleted", "their topic was deleted before they were read"
    RETENTION_PASSED = "retention_passed", "retention removed them before they were read"
    SINK_TOPIC_RECREATED = (
        "sink_topic_recreated",
        "a sink's topic was deleted or created again, and no stage had read their rows there",
    )
    SINK_REMOVED = (
        "sink_removed",
        "the last sink that the token waited for was removed from the pipeline before they arrived",
    )
    PIPELINE_DELETED = "pipeline_deleted", "the pipeline was deleted before they arrived"
    SKIPPED_BY_OPERATOR = "skipped_by_operator", "a stage was restarted from a later offset"


class StopReason(Word):
    """Why a stage stopped.

    The first word in the error of its pipeline, as are `topic_recreated`, `topic_deleted` and
    `retention_passed`.
    """

    CHECKPOINT_DIVERGED = (
        "checkpoint_diverged",
        "Spark's checkpoint and a sink do not agree on what was written",
    )
    TABLE_MISSING = "table_missing", "a sink has no table, and never wrote anything"
    DEAD_LETTER_BUDGET = (
        "dead_letter_budget",
        "more records would go to a dead-letter topic than its budget allows",
    )
    REPLACES_ROWS = "replaces_rows", "a sink that each batch replaces would get older rows again"


class Obstacle(Word):
    """What a stage waits for.

    `blocked_by` of outcomes, pipelines and events, and of `waybill_pipeline_blocked`.
    """

    STAGE_STOPPED = "stage_stopped", "the pipeline is stopped, or is being stopped"
    PAUSED = "paused", "the pipeline is paused: `resume` lets it continue"
    NOT_RUNNING = "not_running", "the pipeline has finished: its next run reads later records"
    STAGE_FAILED = "stage_failed", "it has failed, and is not started again by itself"
    RUNNER_SILENT = "runner_silent", "its runner has said nothing for 10 s"
    RECOVERING = "recovering", "its driver has failed and will be started again"
    BLOCKED_BY_OPEN_TRANSACTION = (
        "blocked_by_open_transaction",
        "a producer has left a transaction open in a topic that it reads",
    )
    NO_SPARK_EXECUTOR = "no_spark_executor", "the Spark cluster gives its driver no executor"
    COMMITS_NOT_ACCEPTED = (
        "commits_not_accepted",
        "Kafka does not accept what its driver reports of its sinks; it is sent again",
    )
    SINK_RETRYING = "sink_retrying", "a sink takes nothing now; its driver tries it again"
    SEARCHING = "searching_for_bad_records", "it looks for the records that its batch fails at"
    BATCH_RUNNING = "batch_running", "a sink has been taking one batch for more than two seconds"


class StateInStage(Word):
    """The state of a token in a stage.

    `state` in `stages` of an outcome.
    """

    DONE = "done", "every sink of the stage has all of it that did not die"
    WAITING = "waiting", "some of it is still to come"
    BLOCKED = "blocked", "some of it is still to come; `blocked_by` says what prevents it"
    LOST = "lost", "some of it never comes to a sink of the stage"
    REMOVED = "removed", "the stage was removed from the pipeline"


class StateInSink(Word):
    """The state of a token in a sink.

    `state` in `sinks` of an outcome.
    """

    COMMITTED = "committed", "the sink has all of it that did not die, and its readers can see it"
    WAITING = "waiting", "some of it is still to come"
    LOST = "lost", "some of it never comes to the sink"
    REMOVED = "removed", "the sink was removed from the pipeline"


class BatchDetail(Word):
    """What else is known of the batch that brought a token to a sink.

    `detail` in `sinks` of an outcome.
    """

    EXPIRED = "expired", "it is committed, by a batch too old for its details to be kept"
    VERSION_EXPIRED = (
        "version_expired",
        "the snapshot of its batch has expired: `version` names what was deleted",
    )


class Action(Word):
    """What people can do with a pipeline or its manifest.

    `action` of an operation.
    """

    APPLY = "apply", "make the pipeline, or change it to this manifest"
    START = "start", "run a stopped pipeline, or its stopped stages, from where they stopped"
    STOP = "stop", "stop it; what it has not processed waits"
    PAUSE = "pause", "begin no batch; its driver stays, so that it continues at once"
    RESUME = "resume", "let a paused pipeline begin batches again"
    RESTART = "restart", "run it with a new driver, also on topics that were created again"
    RESCALE = "rescale", "set how many of its tasks run at once; it gets a driver of that size"
    RENAME = "rename", "call it otherwise; its tokens, fences and offsets stay"
    SET_OFFSETS = "set_offsets", "set where its next run begins, or take that back"
    DELETE = "delete", "end it; tokens of what it has not processed are `lost`"
    VALIDATE = "validate", "check a manifest; nothing is made or changed"
    MAINTAIN = "maintain", "keep the table of a sink in order, at once"
    LOGS = "logs", "read the newest lines of its driver's log; nothing is changed"


class OperationState(Word):
    """The state of a change of a pipeline.

    `state` of an operation.
    """

    PENDING = "pending", "it has not ended yet"
    DONE = "done", "it was carried out"
    FAILED = "failed", "it was refused, or did not succeed; `errors` says why"


class ConnectorState(Word):
    """How far a connector is.

    `state` of a connector of an input.
    """

    WAITING = "waiting", "it has not started: the pipeline has not run yet, or is paused or stopped"
    FETCHING = "fetching", "it fetches its file"
    DONE = "done", "its file was fetched to the end, once and for all"
    FAILED = "failed", "the last attempt failed, `error` says why; it is tried again by itself"


class TokenLevel(Word):
    """What is asked of a token.

    `level` of a question, and of the `view` of a watch.
    """

    ACCEPTED = "accepted", "that it is in Kafka, which every token says: `complete` at once"
    PROCESSED = "processed", "as `visible`: a commit is reported when its rows can be seen"
    VISIBLE = "visible", "that all of it can be seen in the sinks"


class WatchState(Word):
    """How far a watch is.

    `state` of a watch.
    """

    OPEN = "open", "its token is not final yet"
    REPORTED = "reported", "the event was written to `waybill.status`; a webhook may still be tried"
    DELIVERED = "delivered", "the event was written, and its webhook has answered 2xx"
    FAILED = "failed", "the event was written, and its webhook was given up"
    CLOSED = "closed", "it was deleted, and no event is written"


class DeliveryState(Word):
    """How far the event of a watch is on its way to a webhook.

    `state` of the `webhook` of a watch.
    """

    DUE = "due", "it is tried until it is delivered, for 24 hours"
    DELIVERED = "delivered", "the webhook has answered 2xx"
    FAILED = "failed", "the webhook did not accept it in 24 hours, or has answered 410"


class WatchEnd(Word):
    """What a watch reported. `ended_as` of an event `waybill.token.final`, and of a watch."""

    COMPLETE = "complete", "the outcome of the token, which is final"
    DEAD_LETTERED = "dead_lettered", "the outcome of the token, which is final"
    LOST = "lost", "the outcome of the token, which is final"
    EXPIRED = "expired", f"the token was not final in its life of {TOKEN_LIFE}, and says no more"


class EventType(Word):
    """Types of events in `waybill.status`.

    `type` of an event.
    """

    TOKEN_FINAL = "waybill.token.final", "the token of a watch is final; `subject` is the watch"
    WEBHOOK_FAILED = "waybill.webhook.failed", "the webhook of a watch was given up"
    STAGE_COMMITTED = "waybill.stage.committed", "a batch of a stage is durable in one of its sinks"
    PIPELINE_PHASE = "waybill.pipeline.phase", "the phase of a pipeline has changed"
    STAGE_FAILED = "waybill.stage.failed", "a stage has failed by itself; the others go on"
    DEAD_LETTER = "waybill.dead_letter", "a stage has written records to a dead-letter topic"
    TABLE_MAINTAINED = (
        "waybill.table.maintained",
        "a maintenance task has changed the table of a sink",
    )
    TABLE_NOT_MAINTAINED = (
        "waybill.table.not_maintained",
        "a maintenance task of the table of a sink has failed; it is tried again later",
    )


class HistoryGap(Word):
    """Why events of a pipeline are missing.

    `gap` of a page or a stream of its events.
    """

    EXPIRED = "expired", "events next to the id or cursor may be deleted: they are too old"
    TOPIC_RECREATED = (
        "topic_recreated",
        "the topic that the id or cursor names was deleted, and its events with it",
    )
    OTHER_PIPELINE = (
        "other_pipeline",
        "the id or cursor is of another pipeline, such as a deleted one of this name",
    )


class Guarantee(Word):
    """How often a row is in a sink.

    When the token of its record is complete: [manifest.md](manifest.md) says it of each kind.
    """

    ONCE = "once", "exactly once"
    AT_LEAST_ONCE = "at_least_once", "once or more often"
    NONE = "none", "perhaps"
