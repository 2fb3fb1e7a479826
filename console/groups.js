/** Dead letters that died of the same cause, put together. Pure. */

import { number } from "./words.js";

const VALUE = /'[^']*'|"[^"]*"|-?\d+(?:\.\d+)?/g;
const TITLE_CHARACTERS = 120;
const PREFIX = "the query ends at a value: ";

/**
 * What is the same for all of a group: where they died, of what, and the message but for its values.
 * @param {any} letter
 */
export function groupKey({ stage, sink, reason, rule, message, source }) {
	return JSON.stringify([source.topic, stage, sink, reason, rule, message.replace(VALUE, "…")]);
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
		if (!group) found.set(key, { key, title: letter.message, newest: letter, letters: [letter] });
		else {
			group.letters.push(letter);
			if (group.title !== letter.message) group.title = letter.message.replace(VALUE, "…");
		}
	}
	const all = [...found.values()].map((each) => ({ ...each, title: brief(each.title) }));
	return all.sort((a, b) => b.letters.length - a.letters.length);
}

/**
 * The first sentence of a message.
 * @param {string} message
 */
function brief(message) {
	const said = message.startsWith(PREFIX) ? message.slice(PREFIX.length) : message;
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
 * As in `failed in stage big, only sink lake, of orders.in`.
 * @param {Group} group
 */
export function groupPlace({ newest }) {
	const { reason, rule, stage, sink, source } = newest;
	const why = rule ? `${reason}: rule ${rule}` : reason;
	return `${why} in stage ${stage}${sink ? `, only sink ${sink}` : ""}, from ${source.topic}`;
}

/**
 * Why none of them can be sent again; null: they can.
 * @param {Group} group
 * @param {readonly string[]} inputs topics of the pipeline's inputs
 */
export function whyNotSent({ newest }, inputs) {
	if (inputs.includes(newest.source.topic)) return null;
	if (newest.source.topic.includes("://"))
		return "They are rows of a file: mend them, and send them as records.";
	return "They died between two stages, or in a topic that is no input now: send the records of the input again.";
}
