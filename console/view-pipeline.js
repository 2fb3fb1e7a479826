/** One pipeline: its graph with live figures, a stage of it, what happened, its manifest, a record to send. */

import { actions } from "./actions.js";
import { ask, pipelinePath, Problem } from "./api.js";
import { deadPart } from "./dead-parts.js";
import { fill, h, say, set, trouble, wide } from "./dom.js";
import { figuresOf } from "./graph-figures.js";
import { WaybillGraph } from "./graph.js";
import { happenedPart } from "./happened.js";
import { conditionLines, factsOf, whyOf } from "./health.js";
import { live } from "./live.js";
import { manifestPart } from "./manifest.js";
import { toPipeline } from "./router.js";
import { runsPart } from "./runs.js";
import { sendForm } from "./send.js";
import { stagePanel } from "./stage.js";
import { toneOfPhase } from "./words.js";

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
	const conditions = h("ul", { class: "conditions", "aria-label": "what is wrong" });
	const happened = happenedPart(name, abort.signal);
	const runs = runsPart(name, abort.signal);
	const change = h(
		"a",
		{ class: "button", href: `/apply?pipeline=${encodeURIComponent(name)}` },
		"Change it",
	);
	const manifest = manifestPart(name, change);
	const statusLine = h("div", {});
	const element = h(
		"div",
		{ class: "pipeline" },
		h("div", { class: "tools" }, h("h1", {}, name), phase, since, doing),
		why,
		conditions,
		statusLine,
		h("div", { class: "beside" }, wide("graph", graph), dead.element),
		panel,
		h(
			"div",
			{ class: "columns" },
			happened.element,
			h("section", {}, h("h2", {}, "Send a record"), sendForm(name)),
		),
		runs.element,
		manifest.element,
	);
	/** @type {any} */
	let detail = null;
	let reading = false;
	let drawing = 0; // the frame in which new batches are drawn
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
			detail = await ask(pipelinePath(name), { signal: abort.signal });
			fill(statusLine);
			set(statusLine, "data-error", null);
			happened.look();
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
		const known = statusLine.getAttribute("data-error") === String(error);
		set(statusLine, "data-error", String(error));
		if (!known)
			fill(statusLine, trouble(error), gone ? h("p", {}, h("a", { href: "/" }, "All pipelines")) : null);
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
		fill(since, ...factsOf(summary, detail));
		say(why, whyOf(summary));
		conditionLines(conditions, summary.conditions);
		actions(doing, summary, () => void read());
		runs.show(summary);
		manifest.show(detail);
		set(change, "hidden", !live.may("admin") || !summary.allowed_actions.includes("apply"));
		const flow = live.figures.flows.get(detail.uid);
		dead.show(flow && flow.reason === null ? flow.dead : null);
		graph.draw(detail.graph.nodes, detail.graph.edges);
		const { figures, flows } = figuresOf(detail, flow);
		graph.show(figures, flows, live.now(), `stage/${selected}`);
		const stage = detail.stages.find((/** @type {any} */ each) => each.name === selected);
		stagePanel(panel, detail, stage ?? null, selected, abort.signal, () => select(""));
	}

	const onEvent = (/** @type {Event} */ event) => {
		const { detail: news } = /** @type {CustomEvent} */ (event);
		if (news.pipeline !== name) return;
		if (news.type !== "waybill.stage.committed") void read();
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
