/** The runs of a pipeline: when and why each began and ended. */

import { pipelinePath } from "./api.js";
import { fill, h, keep, say, set, time, wide } from "./dom.js";
import { ENDS } from "./meanings.js";
import { paged } from "./paged.js";
import { duration, number, spelled, toneOfEnd, toneOfPhase } from "./words.js";

const FIRST = 10;
const FURTHER = 50;
const AGAIN_MS = 5_000;
const COLUMNS = ["Run", "State", "Began", "Ended", "Took", "Batches", "Rows", "Why", "Started by", "Generation"];
const RUNNER = "stage_runner"; // what nobody asked for

/**
 * @param {string} name
 * @param {AbortSignal} signal
 */
export function runsPart(name, signal) {
	const body = h("tbody", {});
	const heads = COLUMNS.map((each) => h("th", { scope: "col" }, each));
	const table = h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...heads)), body);
	const frame = wide("runs", table);
	set(frame, "hidden", true);
	/** @type {any} */
	let newest = null;
	let shown = "";
	let readAt = -Infinity;
	const list = paged({
		path: `${pipelinePath(name)}/runs`,
		one: "run",
		first: FIRST,
		further: FURTHER,
		signal,
		draw: (/** @type {any[]} */ items) => {
			newest = items[0] ?? null;
			set(frame, "hidden", !newest);
			keep(body, items, (each) => each.id, makeRow, updateRow);
		},
	});

	/**
	 * Read them again if the pipeline is in another phase than they say.
	 * @param {Summary} pipeline
	 */
	function show({ uid, phase, since }) {
		const now = `${uid} ${phase} ${since}`;
		const late = newest?.phase !== phase && performance.now() - readAt > AGAIN_MS;
		if (now === shown && !late) return;
		shown = now;
		readAt = performance.now();
		list.look();
	}
	const element = h("section", { class: "runs" }, h("h2", {}, "Runs"), frame, list.element);
	return { element, show };
}

/** @param {any} run */
function makeRow(run) {
	return h(
		"tr",
		{},
		h("th", { scope: "row" }, number(run.run)),
		...COLUMNS.slice(1).map(() => h("td", {})),
	);
}

/**
 * @param {HTMLTableRowElement} row
 * @param {any} run
 */
function updateRow(row, run) {
	const text = JSON.stringify(run);
	if (row.getAttribute("data-run") === text) return;
	set(row, "data-run", text);
	const [, state, began, ended, took, batches, rows, why, by, generation] = row.children;
	const over = run.end !== null;
	say(generation, number(run.generation));
	fill(began, run.began === null ? "before that" : time(run.began));
	say(by, run.started_by ?? "–");
	fill(ended, over ? time(run.ended) : "goes on");
	say(
		took,
		over && run.ended && run.began ? duration(Date.parse(run.ended) - Date.parse(run.began)) : "–",
	);
	set(took, "class", "figure");
	for (const [cell, count] of [
		[batches, run.batches],
		[rows, run.rows],
	]) {
		say(cell, count === null ? "–" : number(count));
		set(cell, "class", "figure");
	}
	const tone = over ? toneOfEnd(run.end) : toneOfPhase(run.phase);
	fill(
		state,
		h("span", { class: "state", "data-tone": tone }, over ? spelled(run.end) : run.phase),
	);
	const { said, error } = whyOf(run);
	set(why, "class", "because");
	fill(why, said, error && h("div", { class: "why" }, error));
}

/**
 * Why it has ended, in words; what went wrong is apart. Pure.
 * @param {any} run
 */
export function whyOf({ end, reason, ended_by: by, attempt, error }) {
	const failed = attempt ? `after ${number(attempt)} that failed` : "";
	const asked = by && by !== RUNNER ? `by ${by}` : "";
	const cause = error ? "" : (reason ?? ENDS[end] ?? "");
	return {
		said: [cause, asked, failed].filter(Boolean).join(", "),
		error: error ? [error.message, error.hint].filter(Boolean).join(" — ") : "",
	};
}
