/** All pipelines: a table that updates by itself. Where there are none, the way to the first. */

import { query } from "./api.js";
import { fill, h, keep, say, set, time, wide } from "./dom.js";
import { firstPipeline } from "./first.js";
import { live } from "./live.js";
import { phasePart } from "./phases.js";
import { toDead, toPipeline } from "./router.js";
import { tagPart } from "./tags.js";
import { duration, number, rate, short, toneOfPhase } from "./words.js";

const ROWS = 100; // that are drawn before somebody asks for more
const COLUMNS = [
	"Pipeline",
	"Phase",
	"Since",
	"Records/s",
	"Behind",
	"Oldest unfinished",
	"Dead letters, about",
];

/**
 * @param {URLSearchParams} asked
 * @returns {View}
 */
export function pipelinesView(asked) {
	const search = h("input", {
		type: "search",
		id: "filter",
		placeholder: "Filter by name, phase or cause",
		"aria-label": "Filter pipelines",
		oninput: filter,
	});
	search.value = asked.get("name") ?? "";
	const phase = phasePart(asked.get("phase") ?? "", filter);
	const abort = new AbortController();
	const tag = tagPart(asked.get("tag") ?? "", abort.signal, filter, () => show());
	const counted = h("span", { class: "quiet", role: "status" });
	const body = h("tbody", {});
	const table = h(
		"table",
		{ class: "list" },
		h("thead", {}, h("tr", {}, ...COLUMNS.map((name) => h("th", { scope: "col" }, name)))),
		body,
	);
	const frame = wide("pipelines", table);
	const first = h("div", {});
	const all = h("button", { type: "button", class: "small", onclick: showAll }, "Show all");
	const more = h("button", { type: "button", onclick: showMore }, "Show more");
	const tools = h(
		"div",
		{ class: "tools" },
		h("h1", {}, "Pipelines"),
		search,
		phase.element,
		tag.element,
		counted,
		all,
		h("a", { class: "button", href: "/apply" }, "New pipeline"),
	);
	const element = h(
		"div",
		{},
		tools,
		tag.fault,
		first,
		frame,
		h("div", { class: "actions" }, more),
	);
	let room = ROWS;

	function filter() {
		const kept = query({ name: search.value, phase: phase.value(), tag: tag.value() });
		history.replaceState(null, "", kept ? `/?${kept}` : "/");
		room = ROWS;
		show();
	}

	function showAll() {
		search.value = "";
		phase.clear();
		tag.clear();
		filter();
		search.focus();
	}

	function showMore() {
		const links = body.querySelectorAll("th a");
		room += ROWS;
		show();
		/** @type {HTMLElement | undefined} */ (
			[...body.querySelectorAll("th a")][links.length]
		)?.focus();
	}

	function show() {
		if (!live.known) return;
		phase.show(live.pipelines);
		tag.show(live.pipelines);
		if (tag.waits()) return say(counted, "Looking…");
		const wanted = search.value.trim().toLowerCase();
		const filtered = wanted !== "" || phase.value() !== "" || tag.value() !== "";
		const found = live.pipelines.filter(
			(each) => fits(each, wanted) && phase.fits(each) && tag.fits(each),
		);
		const empty = live.pipelines.length === 0;
		set(frame, "hidden", found.length === 0);
		set(tools, "data-empty", empty);
		set(all, "hidden", !filtered);
		if (empty && !first.firstChild) fill(first, firstPipeline());
		if (!empty && first.firstChild && !first.querySelector("[data-begun]")) fill(first);
		const of = number(live.pipelines.length);
		const none = filtered && !found.length ? `no pipeline of ${of} fits` : "";
		say(counted, none || (filtered ? `${number(found.length)} of ${of}` : of));
		set(more, "hidden", found.length <= room);
		say(more, `Show more: ${number(found.length - room)} are not shown`);
		keep(body, found.slice(0, room), (each) => each.uid, makeRow, updateRow);
	}

	const end = live.watch(show);
	return {
		element,
		title: "Pipelines",
		close: () => {
			abort.abort();
			end();
		},
	};
}

/**
 * @param {Summary} pipeline
 * @param {string} wanted in small letters
 */
export function fits(pipeline, wanted) {
	const text = `${pipeline.name} ${pipeline.phase} ${pipeline.stuck?.cause ?? ""}`.toLowerCase();
	return wanted.split(/\s+/).every((word) => text.includes(word));
}

/** @param {Summary} pipeline */
function makeRow(pipeline) {
	const link = h("a", { href: toPipeline(pipeline.name) }, pipeline.name);
	const why = h("div", { class: "why" });
	return h(
		"tr",
		{},
		h("th", { scope: "row" }, link, why),
		h("td", {}, h("span", { class: "phase" })),
		h("td", { class: "since" }),
		h("td", { class: "figure" }),
		h("td", { class: "figure" }),
		h("td", { class: "figure" }),
		h("td", { class: "figure" }, h("a", { href: toDead(pipeline.name) })),
	);
}

/**
 * @param {HTMLTableRowElement} row
 * @param {Summary} pipeline
 */
function updateRow(row, pipeline) {
	const { stuck, uid } = pipeline;
	const flow = live.figures.flows.get(uid);
	const [name, phase, since, perSecond, behind, oldest, dead] = row.children;
	const why = /** @type {HTMLElement} */ (name.lastElementChild);
	const cause = stuck
		? [stuck.cause, stuck.hint].filter(Boolean).join(" — ")
		: (flow?.reason ?? "");
	say(why, cause);
	set(why, "title", cause || null);
	set(row, "data-tone", toneOfPhase(pipeline.phase, stuck !== null));
	say(/** @type {Element} */ (phase.firstElementChild), pipeline.phase);
	if (since.getAttribute("data-at") !== String(pipeline.since)) {
		set(since, "data-at", String(pipeline.since));
		fill(since, time(pipeline.since));
	}
	const known = flow && flow.reason === null;
	const unfinished = live.figures.unfinished(uid);
	const left = live.figures.pending(uid);
	say(perSecond, known ? rate(live.figures.rate(uid)) : "–");
	say(behind, known && left !== null ? short(left) : "–");
	say(
		oldest,
		!known
			? "–"
			: unfinished
				? `${unfinished.older ? "> " : ""}${duration(unfinished.ms)}`
				: "none",
	);
	const letters = /** @type {Element} */ (dead.firstElementChild);
	say(letters, known ? short(flow.dead) : "–");
	set(letters, "aria-label", known ? `about ${flow.dead} dead letters of ${pipeline.name}` : null);
}
