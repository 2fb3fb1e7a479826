/** The batches of a stage: rows of a table, and all that are kept, when somebody wants to see them. */

import { pipelinePath } from "./api.js";
import { h, keep, say, set, time, wide } from "./dom.js";
import { paged } from "./paged.js";
import { duration, number, places, spelled } from "./words.js";

const FIRST = 20;
const FURTHER = 100;
const COLUMNS = ["Batch", "Sink", "Records", "Rows", "Began", "Committed", "Took", "Version"];

/**
 * A table of batches, and the place of its rows.
 * @param {string} label
 */
export function batchTable(label) {
	const body = h("tbody", {});
	const heads = COLUMNS.map((name) => h("th", { scope: "col" }, name));
	const table = h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...heads)), body);
	return { element: wide(label, table), body };
}

/** @param {Batch | PastBatch} batch */
export function batchRow(batch) {
	const version = Object.entries(batch.version ?? {})
		.map(([name, value]) => `${spelled(name)} ${value}`)
		.join(", ");
	const { startedAt, committedAt } = batch;
	return h(
		"tr",
		{},
		h("th", { scope: "row" }, number(batch.batch)),
		h("td", {}, batch.sink),
		h("td", {}, batch.records || "–"),
		h("td", { class: "figure" }, number(batch.rows)),
		h("td", {}, time(startedAt, true)),
		h("td", {}, time(committedAt, true)),
		h("td", { class: "figure" }, committedAt === null ? "–" : duration(committedAt - startedAt)),
		h("td", {}, version || "–"),
	);
}

/**
 * A batch of an answer, once for each of its sinks. Pure.
 * @param {any} batch
 * @param {string} stage
 * @returns {PastBatch[]}
 */
export function inEachSink(batch, stage) {
	const records = places(batch.ranges, batch.ranges_count);
	return batch.sinks.map((/** @type {any} */ sink) => ({
		stage,
		sink: sink.name,
		batch: batch.batch,
		records,
		rows: sink.rows,
		startedAt: Date.parse(batch.started_at),
		committedAt: sink.committed_at === null ? null : Date.parse(sink.committed_at),
		version: sink.version,
	}));
}

/**
 * A button that shows all batches in place of the newest, and they.
 * @param {string} pipeline
 * @param {string} stage
 * @param {AbortSignal} signal
 * @param {Element[]} now what shows the newest
 */
export function pastBatches(pipeline, stage, signal, now) {
	const { element: table, body } = batchTable("batches of 30 days");
	const list = paged({
		path: `${pipelinePath(pipeline)}/stages/${encodeURIComponent(stage)}/batches`,
		one: "batch",
		many: "batches",
		first: FIRST,
		further: FURTHER,
		signal,
		draw: (/** @type {any[]} */ items) => {
			const rows = items.flatMap((each) =>
				inEachSink(each, stage).map((row) => ({ id: `${each.id} ${row.sink}`, row })),
			);
			set(table, "hidden", rows.length === 0);
			keep(
				body,
				rows,
				(each) => each.id,
				(each) => batchRow(each.row),
				() => {},
			);
		},
	});
	const open = h("button", { type: "button", class: "small", onclick: toggle });
	const again = h("button", { type: "button", class: "small", onclick: list.look }, "Look again");
	const place = h("div", {}, table, list.element);
	const element = h("div", {}, h("div", { class: "actions" }, open, again), place);
	set(place, "hidden", true);
	draw();

	function toggle() {
		set(place, "hidden", !place.hidden);
		draw();
		if (!place.hidden) list.look();
	}

	function draw() {
		say(open, place.hidden ? "Show all of 30 days" : "Show the last ones");
		set(again, "hidden", place.hidden);
		for (const each of now) set(each, "data-away", !place.hidden);
	}
	return element;
}
