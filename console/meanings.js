/**
 * What the words of answers mean, and the sentences about outcomes.
 * Made by `python -m waybill_shared.tools.console_words > console/meanings.js`, from `words`,
 * `run_words`, `commands`, `lifecycle` and `sentences` of `waybill_shared.contract`: change these.
 */

/** @type {Record<string, string>} */
export const OUTCOMES = {
	complete: "all of it is committed in every sink at the end of the pipeline",
	dead_lettered: "none of it is missing, and some of it is in a dead-letter topic",
	lost: "some of it will never be processed",
	in_progress: "not all of it has arrived",
	unknown: "it cannot be known now",
};

/** @type {Record<string, string>} */
export const UNKNOWN = {
	redis_away: "Redis does not answer",
	slot_missing: "Redis holds nothing of the pipeline that was written since Redis started",
	no_definition: "the tracker has not read yet what the pipeline consists of",
	generation_behind: "the token is of a later generation of the pipeline than the tracker has read",
	tracker_silent: "not all of it had arrived, and the tracker has confirmed nothing for 5 s",
	nothing_required: "the tracker knows of no sink that is to have the records of the token",
	pipeline_not_known_yet: "this process of status does not know the pipeline of the token yet",
	sink_came_later: "its rows reached the next pipeline before a sink there was added, which does not get them",
	batch_forgotten: "which batches have its rows is not remembered any more, so nobody knows where they went",
	dead_letters_missing: "a stage has passed records in a dead-letter topic that were not reported to the tracker",
};

/** @type {Record<string, string>} */
export const DEATHS = {
	malformed: "it does not fit the schema of its input",
	violated: "it breaks a rule of its input",
	failed: "the queries of a stage end with an error at it",
	refused: "a sink does not take its row",
	put_by_operator: "a person has put it there",
};

/** @type {Record<string, string>} */
export const LOSSES = {
	before_start: "they lie before the offset at which the pipeline, a later stage or a later sink began",
	topic_recreated: "their topic was deleted and created again before they were read",
	topic_deleted: "their topic was deleted before they were read",
	retention_passed: "retention removed them before they were read",
	sink_topic_recreated: "a sink's topic was deleted or created again, and no stage had read their rows there",
	sink_removed: "the last sink that the token waited for was removed from the pipeline before they arrived",
	pipeline_deleted: "the pipeline was deleted before they arrived",
	skipped_by_operator: "a stage was restarted from a later offset",
};

/** @type {Record<string, string>} */
export const OBSTACLES = {
	stage_stopped: "the pipeline is stopped, or is being stopped",
	paused: "the pipeline is paused",
	not_running: "the pipeline has finished",
	stage_failed: "it has failed, and is not started again by itself",
	runner_silent: "its runner has said nothing for 10 s",
	recovering: "its driver has failed and will be started again",
	blocked_by_open_transaction: "a producer has left a transaction open in a topic that it reads",
	no_spark_executor: "the Spark cluster gives its driver no executor",
	commits_not_accepted: "Kafka does not accept what its driver reports of its sinks",
	sink_retrying: "a sink takes nothing now",
	searching_for_bad_records: "it looks for the records that its batch fails at",
	batch_running: "a sink has been taking one batch for more than two seconds",
};

/** @type {Record<string, string>} */
export const IN_STAGE = {
	done: "every sink of the stage has all of it that did not die",
	waiting: "some of it is still to come",
	blocked: "some of it is still to come",
	lost: "some of it never comes to a sink of the stage",
	removed: "the stage was removed from the pipeline",
};

/** @type {Record<string, string>} */
export const IN_SINK = {
	committed: "the sink has all of it that did not die, and its readers can see it",
	waiting: "some of it is still to come",
	lost: "some of it never comes to the sink",
	removed: "the sink was removed from the pipeline",
};

/** @type {Record<string, string>} */
export const BATCHES = {
	expired: "it is committed, by a batch too old for its details to be kept",
	version_expired: "the snapshot of its batch has expired",
};

/** @type {Record<string, string>} */
export const OFTEN = {
	once: "exactly once",
	at_least_once: "once or more often",
	none: "perhaps",
};

/** @type {Record<string, string>} */
export const ENDS = {
	stopped: "a person has stopped or deleted the pipeline",
	superseded: "a change, a restart or a rescale needed another driver",
	finished: "it has read all that there was",
	failed: "a fault of the manifest, the data or another system has ended it",
	crashed: "a fault of Waybill or of the machine has ended it",
	taken_over: "another runner has the pipeline now, and when the driver ended was not written down",
};

/** @type {Record<string, string>} */
export const DEGRADED = {
	driver_silent: "its driver has reported nothing for five minutes",
	no_progress: "a batch has done nothing for ten times its usual length",
	sink_waits: "a batch has waited only for a sink for ten times its usual length",
	batch_long: "a batch has run for ten times its usual length, and goes on",
	no_commit: "records wait, and five times the usual pause had no commit",
	stage_failed: "a stage has failed, and does not start again by itself",
	retrying: "its driver has failed three times or more, one after the other",
};

/** @type {Record<string, string>} */
export const STOPS = {
	drain: "all that its inputs contain now reaches every sink first; later records wait; after 300 s (or as the operator says) it ends as checkpoint does",
	checkpoint: "the running batch ends, in its sinks and in Spark's checkpoint; after 120 s (or as the operator says) it ends as force does",
	force: "the driver is killed at once; the next run repeats its batch, each row once",
};

/** @type {Record<string, string>} */
export const ENDING_PHASES = {
	Rescaling: "its batch ends, then it gets a driver of another size",
	Restarting: "its driver ends, then the next run begins",
	Draining: "all that its inputs contained reaches every sink, then it stops",
	CheckpointStopping: "its running batch ends, then it stops",
	Stopping: "its driver is killed, or closes sinks that are removed",
};

/** @type {Record<string, string>} */
export const SENTENCES = {
	accepted: "{records} accepted {at}{then}.",
	ago: ", {took} ago",
	all_visible: ", all visible after {took}",
	rest_visible: ", {without}, the rest visible after {took}",
	without: ", {without}",
	reason: "Reason: {why}.",
	dead: "{number} dead",
	dropped: "{number} dropped",
	up_to: "up to {number}",
	about: "about {number}",
	sink_has_all: "visible {at} after {took}",
	sink_has_rest: "the rest visible {at} after {took}",
	sink_may_have: "written {at} after {took}",
	in_batch: "{took} of it in the batch",
	in_batch_of: "{took} of it in the batch of {rows}",
	each_row: "each row {often}",
	rewinding: "older rows may be seen now: its stage reads records again",
	maybe_rewinding: "maybe older rows are seen: if its stage reads again is not known now",
	no_batch: "no batch had to bring it",
	still_to_come: "{records} still to come",
	blocked: "{stage} is blocked: {why}.",
	dead_letters: "Dead letters: {number}",
	only_sink_lacks: "only {sink} lacks it",
	sent_again: "Replayed by {place}.",
	left_out: "{records} dropped by rule {rule} in {stage}",
};
