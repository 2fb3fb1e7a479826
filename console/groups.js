/** Dead letters that died of the same cause, put together. Pure. */

import { number } from "./words.js";

const VALUE = /'[^']*'|"[^"]*"|-?\d+(?:\.\d+)?/g;
const TITLE_CHARACTERS = 120;
const ENDED = /^(?:the query|step (?<step>\S+)) ends at a value: /;

/**
 * The step that a message names, if one, and what it says of it.
 * @param {string} message
 */
function parted(message) {
	const found = ENDED.exec(message);
	return { step: found?.groups?.step, said: message.slice(found?.[0].length ?? 0) };
}

/**
 * What is the same for all of a group: where they died, of what, and what is said but for its values.
 * @param {any} letter
 */
export function groupKey({ stage, sink, reason, rule, message, source }) {
	const { step, said } = parted(message);
	const place = [source.topic, stage, step, sink];
	return JSON.stringify([...place, reason, rule, said.replace(VALUE, "…")]);
}

/**
 * The largest first. A letter has `stage`, `sink`, `reason`, `rule`, `message` and `source`.
 * @param {readonly any[]} letters newest first
 * @returns {Group[]}
 */
export function groupsOf(letters) {
	/** @type {Map<string, Group>} */
	const found = new Map();
	for (const letter of letters) {
		const key = groupKey(letter);
		const group = found.get(key);
		const { said } = parted(letter.message);
		if (!group) found.set(key, { key, title: said, newest: letter, letters: [letter] });
		else {
			group.letters.push(letter);
			if (group.title !== said) group.title = said.replace(VALUE, "…");
		}
	}
	const all = [...found.values()].map((each) => ({ ...each, title: brief(each.title) }));
	return all.sort((a, b) => b.letters.length - a.letters.length);
}

/**
 * The first sentence.
 * @param {string} said
 */
function brief(said) {
	const first = said.split(/\.\s|\n/)[0];
	return first.length > TITLE_CHARACTERS ? `${first.slice(0, TITLE_CHARACTERS - 1)}…` : first;
}

/**
 * As in `42 × Division by zero`; where not all letters were looked at, there may be more.
 * @param {Group} group
 * @param {boolean} partly
 */
export function groupTitle({ letters, title }, partly) {
	return `${number(letters.length)}${partly ? " or more" : ""} × ${title}`;
}

/**
 * As in `failed in stage big, step net, from orders.in`, or `refused in stage big, only sink lake, from orders.in`.
 * @param {Group} group
 */
export function groupPlace({ newest }) {
	const { reason, rule, stage, sink, message, source } = newest;
	const { step } = parted(message);
	const why = rule ? `${reason}: rule ${rule}` : reason;
	const place = `stage ${stage}${step ? `, step ${step}` : ""}${sink ? `, only sink ${sink}` : ""}`;
	return `${why} in ${place}, from ${source.topic}`;
}

/**
 * Why none of them can be replayed; null: some can.
 * @param {Group} group
 */
export function whyNotSent({ newest, letters }) {
	const can = letters.some((each) => !each.not_replayable);
	return can ? null : `None can be replayed: ${newest.not_replayable}.`;
}
