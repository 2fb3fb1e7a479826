/** One pipeline: its graph with live figures, a stage of it, what happened, its manifest, a record to send. */

import { actions } from "./actions.js";
import { ask, pipelinePath, Problem } from "./api.js";
import { deadPart } from "./dead-parts.js";
import { fill, h, keep, say, set, time, trouble, wide } from "./dom.js";
import { WaybillGraph } from "./graph.js";
import { live } from "./live.js";
import { manifestPart } from "./manifest.js";
import { toPipeline } from "./router.js";
import { sendForm } from "./send.js";
import { stagePanel } from "./stage.js";
import { duration, rate, short, spelled, toneOfPhase } from "./words.js";

const EVENTS_SHOWN = 100;
const AGAIN_MS = 5_000;

/**
 * @param {string} name
 * @param {URLSearchParams} query
 * @returns {View}
 */
export function pipelineView(name, query) {
	let selected = query.get("stage") ?? "";
	const phase = h("span", { class: "phase" });
	const since = h("span", { class: "quiet" });
	const why = h("div", { class: "why", role: "status" });
	const doing = h("div", { class: "actions" });
	const graph = new WaybillGraph();
	const abort = new AbortController();
	const dead = deadPart(name, abort.signal);
	const panel = h("div", {});
	const happened = h("ol", { class: "events", tabindex: 0, "aria-label": "what happened" });
	const change = h(
		"a",
		{ class: "button", href: `/apply?pipeline=${encodeURIComponent(name)}` },
		"Change it",
	);
	const manifest = manifestPart(name, change);
	const told = h("div", {});
	const element = h(
		"div",
		{ class: "pipeline" },
		h("div", { class: "tools" }, h("h1", {}, name), phase, since, doing),
		why,
		told,
		h("div", { class: "beside" }, wide("graph", graph), dead.element),
		panel,
		h(
			"div",
			{ class: "columns" },
			h("section", {}, h("h2", {}, "What happened"), happened),
			h("section", {}, h("h2", {}, "Send a record"), sendForm(name)),
		),
		manifest.element,
	);
	/** @type {any} */
	let detail = null;
	let reading = false;
	let drawing = 0; // the frame in which batches that came are drawn
	let triedAt = -Infinity;

	graph.picked = (id) => {
		const stage = id.startsWith("stage/")
			? id.slice("stage/".length)
			: detail?.graph.edges.find((/** @type {any} */ e) => e.to === id || e.from === id);
		const named =
			typeof stage === "string"
				? stage
				: [stage?.from, stage?.to]
						.find((each) => each?.startsWith("stage/"))
						?.slice("stage/".length);
		if (named) select(named);
	};

	/** @param {string} stage */
	function select(stage) {
		selected = stage;
		history.replaceState(
			null,
			"",
			stage ? `${toPipeline(name)}?stage=${encodeURIComponent(stage)}` : toPipeline(name),
		);
		show();
	}

	async function read() {
		if (reading) return;
		reading = true;
		triedAt = performance.now();
		try {
			const signal = abort.signal;
			const [one, events] = await Promise.all([
				ask(pipelinePath(name), { signal }),
				ask(`${pipelinePath(name)}/events?limit=${EVENTS_SHOWN}`, { signal }).catch(() => null),
			]);
			detail = one;
			fill(told);
			set(told, "data-told", null);
			if (events) showEvents(events.items);
			show();
		} catch (error) {
			if (!abort.signal.aborted) showTrouble(error);
		} finally {
			reading = false;
		}
	}

	/** @param {unknown} error */
	function showTrouble(error) {
		const gone = error instanceof Problem && error.status === 404;
		const known = told.getAttribute("data-told") === String(error);
		set(told, "data-told", String(error));
		if (!known)
			fill(told, trouble(error), gone ? h("p", {}, h("a", { href: "/" }, "All pipelines")) : null);
		set(element, "data-gone", gone);
	}

	/** Nobody can do anything with it any more. */
	function showGone() {
		if (phase.textContent === "Deleted") return;
		set(element, "data-gone", true);
		say(phase, "Deleted");
		set(phase, "data-tone", "off");
		fill(since);
		say(
			why,
			"It was deleted: tokens of what it had not processed are lost. What is shown is what was last known.",
		);
		fill(doing);
		set(doing, "data-names", null);
	}

	function show() {
		const due = performance.now() - triedAt > AGAIN_MS;
		if (!detail) return void (due && !element.hasAttribute("data-gone") && read());
		const summary = live.pipeline(name) ?? detail;
		if (live.known && !live.pipeline(name)) return showGone();
		set(element, "data-gone", null);
		if (due || summary.generation !== detail.generation) void read();
		const stuck = summary.stuck;
		say(phase, summary.phase);
		set(phase, "data-tone", toneOfPhase(summary.phase, stuck !== null));
		const next = detail.next_run_at;
		fill(
			since,
			"since ",
			time(summary.since),
			`, generation ${summary.generation}`,
			next && ", next run ",
			next && time(next),
		);
		say(why, stuck ? [stuck.cause, stuck.hint].filter(Boolean).join(" — ") : "");
		actions(doing, summary, () => void read());
		manifest.show(detail);
		set(change, "hidden", !live.may("admin"));
		const flow = live.figures.flows.get(detail.uid);
		dead.show(flow && flow.reason === null ? flow.dead : null);
		graph.draw(detail.graph.nodes, detail.graph.edges);
		const { figures, flows } = figuresOf(detail, flow);
		graph.show(figures, flows, live.now(), `stage/${selected}`);
		const stage = detail.stages.find((/** @type {any} */ each) => each.name === selected);
		stagePanel(panel, detail, stage ?? null, selected, () => select(""));
	}

	/** @param {any[]} events */
	function showEvents(events) {
		const newest = events.slice(-EVENTS_SHOWN).reverse();
		keep(
			happened,
			newest,
			(each) => each.id,
			eventLine,
			() => {},
		);
	}

	const onEvent = (/** @type {Event} */ event) => {
		const { detail: told } = /** @type {CustomEvent} */ (event);
		if (told.pipeline !== name) return;
		if (told.type !== "waybill.stage.committed") void read();
		else
			drawing ||= requestAnimationFrame(() => {
				drawing = 0;
				show();
			});
	};
	live.addEventListener("event", onEvent);
	const end = live.watch(show);
	void read();
	live.recall(name).then(show, () => {}); // else there are those that come from now on
	return {
		element,
		title: name,
		close: () => {
			abort.abort();
			cancelAnimationFrame(drawing);
			end();
			live.removeEventListener("event", onEvent);
		},
	};
}

/**
 * @param {any} detail
 * @param {Flow | undefined} flow
 */
function figuresOf(detail, flow) {
	/** @type {Map<string, Figure>} */
	const figures = new Map();
	const flows = new Map();
	const batches = live.batches.get(detail.uid) ?? [];
	const perSecond = flow?.reason === null ? live.figures.rate(detail.uid) : null;
	for (const input of detail.inputs) {
		const found = flow?.inputs.find((each) => each.name === input.name);
		const left = found ? `${short(found.written - found.arrived)} unfinished` : "";
		figures.set(`input/${input.name}`, {
			lines: [input.topic, left],
			label: `input ${input.name}, topic ${input.topic}, ${left}`,
		});
	}
	for (const stage of detail.stages) {
		const mine = batches.filter((each) => each.stage === stage.name);
		const last = mine.at(-1);
		const took = last
			? `batch ${duration(last.committedAt - last.startedAt)}`
			: stage.last_batch
				? `batch ${stage.last_batch.batch}`
				: "no batch yet";
		const behind = (flow?.sinks ?? []).filter((each) => each.stage === stage.name);
		const most = behind.length
			? `${short(Math.max(...behind.map((each) => each.behind)))} behind`
			: "";
		const blocked = stage.sinks.some(
			(/** @type {any} */ sink) => sink.blocked_by === "sink_retrying",
		);
		const dots = mine.map((each) => ({
			at: each.committedAt,
			value: each.committedAt - each.startedAt,
		}));
		figures.set(`stage/${stage.name}`, {
			lines: [most, took],
			dots,
			tone: blocked || ["Failed", "Recovering"].includes(detail.phase) ? "bad" : undefined,
			label: `stage ${stage.name}, ${most}, ${took}`,
		});
		for (const sink of stage.sinks) {
			const lag = flow?.sinks.find((each) => each.stage === stage.name && each.name === sink.name);
			const lines = [sink.kind, lag ? `${short(lag.behind)} behind` : ""];
			const tone = sink.blocked_by === "sink_retrying" ? "bad" : undefined;
			figures.set(`sink/${sink.name}`, {
				lines,
				tone,
				label: `sink ${sink.name}, ${lines.join(", ")}`,
			});
			flows.set(
				`stage/${stage.name} sink/${sink.name}`,
				rowsPerSecond(mine.filter((each) => each.sink === sink.name)),
			);
		}
	}
	const roots = detail.inputs.map((/** @type {any} */ each) => `input/${each.name}`);
	for (const edge of detail.graph.edges) {
		if (roots.length === 1 && roots.includes(edge.from))
			flows.set(`${edge.from} ${edge.to}`, perSecond === null ? "" : rate(perSecond));
	}
	return { figures, flows };
}

/** @param {Batch[]} batches */
function rowsPerSecond(batches) {
	const from = live.now() - 10_000;
	const recent = batches.filter((each) => each.committedAt > from);
	return recent.length ? rate(recent.reduce((sum, each) => sum + each.rows, 0) / 10) : "";
}

/** @param {any} event */
function eventLine(event) {
	const what = {
		transition: [event.phase_from, event.phase].filter(Boolean).join(" → "),
		claim: "claimed by a runner",
		schedule: "time of its schedule",
		blocked: event.blocked_by ? `waits: ${spelled(event.blocked_by)}` : "no longer waits",
		maintenance: event.maintenance ? `${event.maintenance.task} of ${event.maintenance.sink}` : "maintenance",
	};
	const named = /** @type {Record<string, string>} */ (what)[event.kind] ?? event.kind;
	const done = event.maintenance
		? Object.entries(event.maintenance.done)
				.map(([name, value]) => `${value} ${name}`)
				.join(", ")
		: event.reason;
	const error = event.kind === "transition" ? event.error : null;
	return h(
		"li",
		{ "data-tone": error ? "bad" : null },
		time(event.at),
		" ",
		h("strong", {}, named),
		done ? ` ${done}` : null,
		error
			? h("div", { class: "why" }, [error.message, error.hint].filter(Boolean).join(" — "))
			: null,
		event.actor && event.actor !== "stage_runner"
			? h("span", { class: "quiet" }, ` by ${event.actor}`)
			: null,
	);
}
