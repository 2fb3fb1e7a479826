/** Words for people: numbers, times, and the tone of a state. Pure. */

const NUMBER = new Intl.NumberFormat("en");
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-CA");
const PLACES_MAX = 3;
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** @param {number} value */
export function number(value) {
	return NUMBER.format(value);
}

/** @param {number} value */
export function short(value) {
	return value < 10_000 ? NUMBER.format(value) : SHORT.format(value);
}

/**
 * @param {number} value
 * @param {string} one
 * @param {string} [many]
 */
export function count(value, one, many = `${one}s`) {
	return `${number(value)} ${value === 1 ? one : many}`;
}

/** @param {number} ms */
export function duration(ms) {
	if (ms < 0) return "0 ms";
	if (ms < 1_000) return `${Math.round(ms)} ms`;
	if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
	if (ms < 3_600_000) return parts(ms, 60_000, "min", 1_000, "s");
	if (ms < 86_400_000) return parts(ms, 3_600_000, "h", 60_000, "min");
	return parts(ms, 86_400_000, "d", 3_600_000, "h");
}

/**
 * @param {number} ms
 * @param {number} large
 * @param {string} largeName
 * @param {number} small
 * @param {string} smallName
 */
function parts(ms, large, largeName, small, smallName) {
	const rest = Math.floor((ms % large) / small);
	return `${Math.floor(ms / large)} ${largeName}${rest ? ` ${rest} ${smallName}` : ""}`;
}

/** @param {number | null} perSecond */
export function rate(perSecond) {
	if (perSecond === null) return "–";
	if (perSecond > 0 && perSecond < 10) return `${perSecond.toFixed(1)}/s`;
	return `${short(Math.round(perSecond))}/s`;
}

/** @param {Date} at */
export function inUtc(at) {
	return `${at.toISOString().replace("T", " ").replace("Z", "")} UTC`;
}

/**
 * @param {Date} at
 * @param {boolean} precise
 * @param {Date} now by the clock that `at` is of
 */
export function inZone(at, precise, now) {
	const today = at.toDateString() === now.toDateString();
	const clock = CLOCK.format(at);
	const exact = precise ? `${clock}.${String(at.getMilliseconds()).padStart(3, "0")}` : clock;
	return today ? exact : `${DAY.format(at)} ${exact}`;
}

/** @type {Record<string, Tone>} */
const PHASES = {
	Running: "good",
	Paused: "off",
	Created: "busy",
	Scheduling: "busy",
	Starting: "busy",
	Rescaling: "busy",
	Restarting: "busy",
	Draining: "busy",
	CheckpointStopping: "busy",
	Stopping: "busy",
	Stopped: "off",
	Finishing: "busy",
	Finished: "good",
	Recovering: "bad",
	Failed: "bad",
	Unknown: "doubt",
};

export function phases() {
	return Object.keys(PHASES);
}

/** @type {Record<string, Tone>} */
const OUTCOMES = {
	complete: "good",
	dead_lettered: "bad",
	lost: "bad",
	in_progress: "busy",
	unknown: "doubt",
};

/** @type {Record<string, Tone>} */
const ENDS = {
	finished: "good",
	stopped: "off",
	superseded: "off",
	failed: "bad",
	crashed: "bad",
	taken_over: "doubt",
};

/**
 * @param {string} phase
 * @param {boolean} [stuck]
 * @returns {Tone}
 */
export function toneOfPhase(phase, stuck = false) {
	const tone = PHASES[phase] ?? "doubt";
	return stuck && (tone === "good" || tone === "busy") ? "bad" : tone;
}

/**
 * @param {string} outcome
 * @returns {Tone}
 */
export function toneOfOutcome(outcome) {
	return OUTCOMES[outcome] ?? "doubt";
}

/**
 * @param {string} end of a run
 * @returns {Tone}
 */
export function toneOfEnd(end) {
	return ENDS[end] ?? "doubt";
}

/**
 * A word of an answer as people write it.
 * @param {string | null | undefined} word
 */
export function spelled(word) {
	return (word ?? "").replaceAll("_", " ");
}

/**
 * The positions of records; `end` is the offset after the last one.
 * @param {{topic: string, partition: number, start: number, end: number}[]} ranges
 * @param {number} [all] how many there are, if these are the first of them
 */
export function places(ranges, all = ranges.length) {
	const said = ranges
		.slice(0, PLACES_MAX)
		.map((each) => `${each.topic} ${each.partition}: ${each.start}–${each.end - 1}`);
	const more = all - said.length;
	return said.join(", ") + (more ? ` and ${count(more, "partition")} more` : "");
}
