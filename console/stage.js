/** A stage of a pipeline: its position, its last batches and its part of the manifest. */

import { batchRow, batchTable, pastBatches } from "./batches.js";
import { fill, h, keep, say, set, time } from "./dom.js";
import { live } from "./live.js";
import { logPart } from "./log.js";
import { spelled } from "./words.js";

const BATCHES_SHOWN = 20;

/**
 * @param {HTMLElement} place
 * @param {any} detail of the pipeline
 * @param {any | null} stage
 * @param {string} wanted the name that the address has
 * @param {AbortSignal} signal
 * @param {() => void} close
 */
export function stagePanel(place, detail, stage, wanted, signal, close) {
	if (!stage) {
		fill(place, wanted ? h("p", { class: "quiet" }, `The pipeline has no stage ${wanted}.`) : null);
		return;
	}
	const shown = `${stage.name} ${detail.generation}`;
	if (place.firstElementChild?.getAttribute("data-stage") !== shown)
		fill(place, frame(detail, stage, shown, signal, close));
	const sinks = /** @type {HTMLElement} */ (place.querySelector(".sinks"));
	const body = /** @type {HTMLElement} */ (place.querySelector("tbody"));
	const none = /** @type {HTMLElement} */ (place.querySelector(".none"));
	keep(
		sinks,
		stage.sinks,
		(/** @type {any} */ each) => each.name,
		() => h("li", {}),
		showSink,
	);
	const mine = (live.batches.get(detail.uid) ?? []).filter((each) => each.stage === stage.name);
	const newest = mine.slice(-BATCHES_SHOWN).reverse();
	keep(
		body,
		newest,
		(each) => `${each.sink} ${each.batch} ${each.committedAt}`,
		batchRow,
		() => {},
	);
	set(none, "hidden", newest.length > 0);
	const last = stage.last_batch;
	fill(
		none,
		last ? "No batch of the last ten minutes is known here; the last one was " : "No batch yet.",
		last ? `batch ${last.batch} at ` : null,
		last ? time(last.committed_at) : null,
	);
}

/**
 * @param {any} detail
 * @param {any} stage
 * @param {string} shown
 * @param {AbortSignal} signal
 * @param {() => void} close
 */
function frame(detail, stage, shown, signal, close) {
	const closer = h("button", { type: "button", class: "small", onclick: close }, "Close");
	const last = batchTable("last batches").element;
	const none = h("p", { class: "none quiet" });
	return h(
		"section",
		{ class: "panel", "data-stage": shown, "aria-label": `stage ${stage.name}` },
		h(
			"div",
			{ class: "tools" },
			h("h2", {}, `Stage ${stage.name}`),
			h("span", { class: "quiet" }, `reads ${stage.inputs.join(", ")}`),
			closer,
		),
		h("ul", { class: "sinks" }),
		h("h3", {}, "Batches"),
		last,
		none,
		pastBatches(detail.name, stage.name, signal, [last, none]),
		h("h3", {}, "In the manifest"),
		h("pre", { tabindex: 0 }, partOf(detail.manifest, stage.name)),
		h("h3", {}, "The driver of the pipeline"),
		logPart(detail.name),
	);
}

/**
 * @param {HTMLElement} item
 * @param {any} sink
 */
function showSink(item, sink) {
	const waits = sink.blocked_by
		? `: ${spelled(sink.blocked_by)}${sink.message ? `, ${sink.message}` : ""}`
		: "";
	const awaited = sink.terminal ? ", tokens wait for it" : "";
	say(item, `${sink.name}: ${sink.kind} ${sink.target}${awaited}${waits}`);
	set(item, "data-tone", sink.blocked_by === "sink_retrying" ? "bad" : null);
}

/**
 * The lines of a stage as they were written: from its name on, up to the next entry of the list. Pure.
 * @param {string} manifest
 * @param {string} name
 */
export function partOf(manifest, name) {
	const lines = manifest.split("\n");
	const stages = lines.findIndex((each) => /^stages:/.test(each));
	const dash = /^(\s*)-\s/;
	const named = new RegExp(`\\bname:\\s*["']?${name.replace(/[^\w-]/g, "")}["']?\\s*([,}#]|$)`);
	for (let at = stages + 1; stages >= 0 && at < lines.length; at++) {
		const found = dash.exec(lines[at]);
		if (!found) continue;
		const indent = found[1].length;
		let end = at + 1;
		while (end < lines.length && (lines[end].trim() === "" || lines[end].search(/\S/) > indent))
			end++;
		const entry = lines.slice(at, end);
		const own = entry.findIndex(
			(each, i) => named.test(each) && (i === 0 || each.search(/\S/) <= indent + 2),
		);
		if (own >= 0) return entry.join("\n").trimEnd();
		at = end - 1;
	}
	return manifest;
}
