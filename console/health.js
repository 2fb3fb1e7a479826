/** How a pipeline is: its phase in words, what is wrong next to it, and what comes next. */

import { h, keep, time } from "./dom.js";
import { DEGRADED } from "./meanings.js";
import { spelled, toneOfPhase } from "./words.js";

/**
 * Since when, in which run, and what happens by itself next.
 * @param {Summary} summary
 * @param {any} detail
 * @returns {Child[]}
 */
export function factsOf(summary, detail) {
	const { phase, reason, stuck } = summary;
	const same = detail.phase === phase; // the summary is newer
	const words = toneOfPhase(phase) === "busy" && !stuck && reason ? `: ${reason}` : "";
	const coming = [
		["next run", detail.next_run_at],
		["becomes a stronger stop", same && detail.escalates_at],
		["next attempt", same && detail.next_attempt_at],
	].filter(([, at]) => at);
	return [
		"since ",
		time(summary.since),
		words,
		`, generation ${summary.generation}`,
		detail.run ? `, run ${detail.run}` : "",
		...coming.flatMap(([what, at]) => [`, ${what} at `, time(at)]),
	];
}

/**
 * Why it processes nothing, or not as usual; what its conditions say is theirs to say. Pure.
 * @param {Summary} summary
 */
export function whyOf({ stuck, conditions }) {
	if (!stuck || conditions.some((each) => sentenceOf(each) === stuck.cause)) return "";
	return [stuck.cause, stuck.hint].filter(Boolean).join(" — ");
}

/** @param {Condition} condition */
export function sentenceOf({ stage, cause, message }) {
	const what = message ?? DEGRADED[cause] ?? spelled(cause);
	return stage === null || what.includes(`stage ${stage}:`) ? what : `stage ${stage}: ${what}`;
}

/**
 * @param {HTMLElement} place
 * @param {Condition[]} conditions
 */
export function conditionLines(place, conditions) {
	keep(
		place,
		conditions,
		(each) => `${each.kind} ${each.stage} ${each.cause} ${each.since}`,
		(each) =>
			h(
				"li",
				{ class: "why" },
				h("strong", {}, spelled(each.kind)),
				" since ",
				time(each.since),
				`: ${sentenceOf(each)}`,
				each.hint && ` — ${each.hint}`,
			),
		() => {},
	);
}
