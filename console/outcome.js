/** What is said of an outcome: never more than its answer does. Words and sentences are in `meanings.js`. Pure. */

import {
	BATCHES,
	DEATHS,
	IN_SINK,
	IN_STAGE,
	LOSSES,
	OBSTACLES,
	OFTEN,
	OUTCOMES,
	SENTENCES,
	UNKNOWN,
} from "./meanings.js";
import { count, duration, number, spelled } from "./words.js";

export const FINAL = ["complete", "dead_lettered", "lost"];
const ARRIVED = ["complete", "dead_lettered"];
const DEAD_READ_MAX = 10_000; // entries that an answer counts: it says no more of what is beyond

/**
 * A sentence with what belongs into its braces.
 * @param {string} text
 * @param {Record<string, Child>} values
 * @returns {Child[]}
 */
function filled(text, values) {
	return text.split(/[{}]/).map((each, i) => (i % 2 ? values[each] : each));
}

/**
 * @param {string} text
 * @param {Record<string, Child>} values
 */
function said(text, values) {
	return filled(text, values).join("");
}

/**
 * A word of a newer Waybill has no meaning here, and is said itself.
 * @param {Record<string, string>} table
 * @param {string | null | undefined} word
 */
function meaning(table, word) {
	return table[word ?? ""] ?? spelled(word);
}

/** @param {string} text */
function asSentence(text) {
	return text && `${text[0].toUpperCase()}${text.slice(1)}.`;
}

/**
 * How many died, as far as the answer knows it: `dead_count` is the most, unless not all was counted.
 * @param {any} part
 * @param {any} outcome
 */
function deadNumber(part, outcome) {
	const most = part.dead_count;
	if (outcome.dead_truncated && most >= DEAD_READ_MAX)
		return said(SENTENCES.about, { number: number(most) });
	const exact =
		!outcome.dead_truncated && part.dead.every((/** @type {any} */ each) => each.exact);
	return exact ? number(most) : said(SENTENCES.up_to, { number: number(most) });
}

/**
 * What of it is not in the sinks, in words; empty if all is.
 * @param {any} part
 * @param {any} outcome
 */
function without(part, outcome) {
	const dropped = (part.dropped ?? []).reduce(
		(/** @type {number} */ sum, /** @type {any} */ each) => sum + each.up_to,
		0,
	);
	return [
		part.dead_count ? said(SENTENCES.dead, { number: deadNumber(part, outcome) }) : null,
		dropped
			? said(SENTENCES.dropped, { number: said(SENTENCES.up_to, { number: number(dropped) }) })
			: null,
	]
		.filter(Boolean)
		.join(", ");
}

/**
 * Where all died there is no rest.
 * @param {any} outcome
 */
function leavesNothing({ accepted, dead_count: dead }) {
	return accepted !== null && dead >= accepted;
}

/**
 * What is said first: what the outcome means, how many records, since when, and why not.
 * @param {any} outcome
 * @param {Child} at when they were accepted
 * @param {Child} ago how long ago that was: it counts
 * @returns {Child[]}
 */
export function leadOf(outcome, at, ago) {
	const { accepted, reason } = outcome;
	const records = accepted === null || accepted === undefined ? "Records" : count(accepted, "record");
	const then = outcome.outcome === "in_progress" ? filled(SENTENCES.ago, { took: ago }) : [];
	const [before, after] = SENTENCES.accepted.split("{then}");
	return [
		asSentence(meaning(OUTCOMES, outcome.outcome)),
		" ",
		...filled(before, { records, at }),
		...then,
		arrivedOf(outcome),
		after,
		reason ? ` ${said(SENTENCES.reason, { why: meaning(UNKNOWN, reason) })}` : "",
	];
}

/** @param {any} outcome */
function arrivedOf(outcome) {
	const lacking = without(outcome, outcome);
	const known = ARRIVED.includes(outcome.outcome) && outcome.completed_at;
	const took = known
		? duration(Date.parse(outcome.completed_at) - Date.parse(outcome.issued_at))
		: "";
	const rest = known && !leavesNothing(outcome);
	if (lacking)
		return said(rest ? SENTENCES.rest_visible : SENTENCES.without, { without: lacking, took });
	const sure = outcome.stages.every((/** @type {any} */ stage) =>
		stage.sinks.every((/** @type {any} */ sink) => sink.guarantee !== "none"),
	);
	return known && sure ? said(SENTENCES.all_visible, { took }) : "";
}

/**
 * What a sink has of it. Of one with a batch: since when, after how long, and how it got there.
 * @param {{sink: SinkOutcome, stage: StageOutcome, part: any, outcome: any}} asked
 * @param {Bar | null} work
 * @param {Child} at when it could be seen
 * @returns {Child[]}
 */
export function sinkSaid({ sink, stage, part, outcome }, work, at) {
	if (sink.state === "waiting") return [waitingSaid(sink, outcome)];
	if (sink.state !== "committed") return [meaning(IN_SINK, sink.state)];
	if (!work) return [sink.detail ? meaning(BATCHES, sink.detail) : SENTENCES.no_batch];
	const issuedAt = Date.parse(outcome.issued_at);
	const short = lacks(sink, stage, part);
	if (short && leavesNothing(outcome)) return [meaning(IN_SINK, sink.state)];
	const seen = short ? SENTENCES.sink_has_rest : SENTENCES.sink_has_all;
	const has = sink.guarantee === "none" ? SENTENCES.sink_may_have : seen;
	return [
		...filled(has, { at, took: duration(work.end - issuedAt) }),
		batchSaid(sink, work),
		sink.guarantee && sink.guarantee !== "once"
			? `, ${said(SENTENCES.each_row, { often: meaning(OFTEN, sink.guarantee) })}`
			: "",
		rewindingSaid(sink),
	];
}

/** @param {SinkOutcome} sink */
function rewindingSaid(sink) {
	if (sink.rewinding === null) return `, ${SENTENCES.maybe_rewinding}`;
	return sink.rewinding ? `, ${SENTENCES.rewinding}` : "";
}

/**
 * @param {SinkOutcome} sink
 * @param {Bar} work
 */
function batchSaid(sink, work) {
	if (!sink.read_at) return ""; // nobody knows when its batch began
	const took = duration(work.end - work.start);
	if (sink.batch_rows === null) return `, ${said(SENTENCES.in_batch, { took })}`;
	return `, ${said(SENTENCES.in_batch_of, { took, rows: count(sink.batch_rows, "row") })}`;
}

/**
 * Whether some of it may never come to the sink. What only another sink of its stage refused does.
 * @param {SinkOutcome} sink
 * @param {StageOutcome} stage
 * @param {any} part
 */
function lacks(sink, stage, part) {
	const dead = part.dead ?? [];
	return (
		part.dropped?.length > 0 ||
		part.dead_count > dead.length ||
		dead.some(
			(/** @type {any} */ each) =>
				!(each.sink && each.stage === stage.stage && each.sink !== sink.name),
		)
	);
}

/**
 * Of a token that is only from where to where, offsets are counted that may hold no record.
 * @param {SinkOutcome} sink
 * @param {any} outcome
 */
function waitingSaid(sink, outcome) {
	const lag = count(sink.behind, "record");
	const records =
		outcome.accepted === null ? said(SENTENCES.up_to, { number: lag }) : lag;
	const why = sink.message ?? (sink.blocked_by ? meaning(OBSTACLES, sink.blocked_by) : "");
	return said(SENTENCES.still_to_come, { records }) + (why ? `: ${why}` : "");
}

/** @param {StageOutcome} stage */
export function stageSaid(stage) {
	if (stage.blocked_by) return meaning(OBSTACLES, stage.blocked_by);
	return stage.batch === null ? meaning(IN_STAGE, stage.state) : `batch ${stage.batch}`;
}

/** @param {StageOutcome} stage */
export function blockedSaid(stage) {
	return said(SENTENCES.blocked, { stage: stage.stage, why: meaning(OBSTACLES, stage.blocked_by) });
}

/** @param {string} detail of a sink's batch */
export function versionSaid(detail) {
	return asSentence(meaning(BATCHES, detail));
}

/** @param {string} reason */
export function lossSaid(reason) {
	return meaning(LOSSES, reason);
}

/** @param {any} dead */
export function deathSaid(dead) {
	const only = dead.sink ? `, ${said(SENTENCES.only_sink_lacks, { sink: dead.sink })}` : "";
	const place = dead.replayed_as;
	const again = place
		? ` ${said(SENTENCES.sent_again, { place: `${place.topic}[${place.partition}] offset ${place.offset}` })}`
		: "";
	return ` in ${dead.stage}${only}: ${dead.message.replace(/\.$/, "")}.${again}`;
}

/** @param {string} reason of a dead letter */
export function reasonMeant(reason) {
	return meaning(DEATHS, reason);
}

/** @param {any} dead */
export function deadPlace(dead) {
	const place = `${dead.topic}[${dead.partition}]`;
	if (dead.exact) return `${place} offset ${dead.offset}`;
	const most = said(SENTENCES.up_to, { number: number(dead.up_to) });
	return `${most} of ${place} offsets ${dead.start} to ${dead.end - 1}`;
}

/** @param {any} dropped */
export function droppedSaid({ up_to: most, rule, stage }) {
	const records = said(SENTENCES.up_to, { number: count(most, "record") });
	return said(SENTENCES.left_out, { records, rule, stage });
}

/**
 * @param {any} part
 * @param {any} outcome
 */
export function deadHeading(part, outcome) {
	return said(SENTENCES.dead_letters, { number: deadNumber(part, outcome) });
}
