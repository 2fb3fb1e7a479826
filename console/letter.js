/** One dead letter, whole: JSON can be folded, bytes are shown as hex, numbers as they were written. */

import { h, time } from "./dom.js";
import { spelled } from "./words.js";

const SHOWN = 100_000; // characters of a value that are drawn at once
const HEX_BYTES = 4_096;
const OPEN_DEPTH = 2;
const CHILDREN_MAX = 500;
const EAGER = 20_000; // in a value of so many characters folded parts are drawn too, so that they are found
const OPEN_MAX = 20; // parts that are not folded at first, where a value is longer

/** A number as its text has it: JavaScript's would lose digits. */
class Exact {
	/** @param {string} text */
	constructor(text) {
		this.text = text;
	}
}

/** @param {string} text */
export function parsed(text) {
	const reviver = (
		/** @type {string} */ _,
		/** @type {unknown} */ value,
		/** @type {any} */ context,
	) =>
		typeof value === "number" && context?.source !== undefined ? new Exact(context.source) : value;
	return JSON.parse(text, /** @type {any} */ (reviver));
}

/** @param {string} base64 */
export function hex(base64) {
	const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
	const rows = [];
	for (let at = 0; at < Math.min(bytes.length, HEX_BYTES); at += 16) {
		const row = [...bytes.slice(at, at + 16)];
		const codes = row.map((each) => each.toString(16).padStart(2, "0")).join(" ");
		const shown = row
			.map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : "."))
			.join("");
		rows.push(`${at.toString(16).padStart(6, "0")}  ${codes.padEnd(47)}  ${shown}`);
	}
	if (bytes.length > HEX_BYTES) rows.push(`… ${bytes.length - HEX_BYTES} bytes more`);
	return rows.join("\n");
}

/** @param {string} text */
function brief(text) {
	const more = text.length - SHOWN;
	return more > 0 ? `${text.slice(0, SHOWN)}\n… ${more} characters more` : text;
}

/**
 * @param {unknown} value
 * @param {number} depth
 * @param {boolean} eager
 * @returns {Node}
 */
function tree(value, depth, eager) {
	if (value instanceof Exact) return h("span", { class: "number" }, brief(value.text));
	if (value === null || typeof value !== "object")
		return h("span", { class: typeof value }, brief(JSON.stringify(value)));
	const list = Array.isArray(value);
	const entries = list ? value.map((each, i) => [i, each]) : Object.entries(value);
	const marks = list ? "[]" : "{}";
	if (entries.length === 0) return h("span", {}, marks);
	const shown = entries.slice(0, CHILDREN_MAX);
	const more = entries.length - shown.length;
	const parts = h("ul", {});
	const grow = () => {
		if (parts.firstChild || !(eager || box.open)) return;
		parts.append(
			...shown.map(([name, each]) =>
				h(
					"li",
					{},
					h("span", { class: "name" }, `${brief(String(name))}: `),
					tree(each, depth + 1, eager),
				),
			),
		);
		if (more) parts.append(h("li", { class: "quiet" }, `… ${more} more`));
	};
	const open = depth < OPEN_DEPTH && (eager || depth === 0 || entries.length <= OPEN_MAX);
	const box = h(
		"details",
		{ open, ontoggle: grow },
		h("summary", {}, `${marks[0]} ${entries.length} ${marks[1]}`),
		parts,
	);
	grow();
	return box;
}

/**
 * @param {string | null} text
 * @param {string | null} base64
 */
export function valueView(text, base64) {
	if (base64 !== null) return h("pre", { tabindex: 0 }, hex(base64));
	if (text === null) return h("p", { class: "quiet" }, "null");
	try {
		const value = parsed(text);
		if (typeof value === "object" && value !== null)
			return h("div", { class: "json" }, tree(value, 0, text.length <= EAGER));
	} catch {
		// shown as it is
	}
	return h("pre", { tabindex: 0 }, brief(text));
}

/** @param {any} place */
function replayedAs(place) {
	if (!place) return "no, as far as is known";
	const how = place.edited ? ", with an edited record" : "";
	return `by ${place.topic}[${place.partition}] offset ${place.offset}${how}`;
}

/** @param {any} letter */
export function letterView(letter) {
	const { source } = letter;
	/** @type {[string, Node | string][]} */
	const facts = [
		["Reason", `${spelled(letter.reason)}${letter.rule ? `: rule ${letter.rule}` : ""}`],
		["Message", letter.message],
		["Stage", letter.sink ? `${letter.stage}, only sink ${letter.sink}` : letter.stage],
		["Missing in", letter.lacking.join(", ") || "no sink that the pipeline has now"],
		["Record", `${source.topic}[${source.partition}] offset ${source.offset}`],
		["Lies at", `${letter.topic}[${letter.partition}] offset ${letter.offset}`],
		["Since", time(letter.at, true)],
		["Replayed", replayedAs(letter.replayed_as)],
		["Error", letter.error],
		["Batch", letter.batch],
	];
	return h(
		"section",
		{ class: "letter", "aria-label": "dead letter" },
		h("h2", {}, letter.id),
		h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
		h("h3", {}, "Key"),
		valueView(letter.key, letter.key_base64),
		h("h3", {}, "Headers"),
		letter.headers.length === 0
			? h("p", { class: "quiet" }, "none")
			: h(
					"dl",
					{},
					...letter.headers.flatMap((/** @type {any} */ each) => [
						h("dt", {}, each.name),
						h(
							"dd",
							{},
							each.value_base64 === null ? brief(each.value ?? "null") : hex(each.value_base64),
						),
					]),
				),
		h("h3", {}, "Value"),
		valueView(letter.value, letter.value_base64),
	);
}
