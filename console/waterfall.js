/** The way of a token through the stages of one pipeline, over time: `<waybill-waterfall>`. */

import { h, say, set, time } from "./dom.js";
import { toPipeline } from "./router.js";
import { count, duration, spelled } from "./words.js";

/**
 * When a sink worked at it, in milliseconds; what goes on ends now. Pure.
 * @param {SinkOutcome} sink
 * @param {StageOutcome} stage
 * @param {number} begun
 * @param {number} now
 * @returns {{wait: Bar | null, work: Bar | null}}
 */
export function bars(sink, stage, begun, now) {
	const tone = toneOf(sink, stage);
	if (sink.state === "committed") {
		const end = Date.parse(sink.committed_at ?? stage.committed_at ?? "");
		if (Number.isNaN(end)) return { wait: null, work: null };
		const start = Math.min(end, sink.read_at ? Math.max(begun, Date.parse(sink.read_at)) : end);
		return { wait: bar(begun, start, "wait"), work: bar(start, Math.max(end, start), tone) };
	}
	if (sink.state === "waiting") return { wait: bar(begun, Math.max(now, begun), tone), work: null };
	return { wait: null, work: null };
}

/**
 * @param {number} start
 * @param {number} end
 * @param {string} tone
 */
function bar(start, end, tone) {
	return { start: Math.min(start, end), end, tone };
}

/**
 * @param {SinkOutcome} sink
 * @param {StageOutcome} stage
 */
function toneOf(sink, stage) {
	if (sink.state === "committed") return "good";
	if (sink.state === "lost") return "bad";
	if (sink.state === "removed") return "off";
	return stage.blocked_by || sink.blocked_by === "sink_retrying" ? "bad" : "busy";
}

export class WaybillWaterfall extends HTMLElement {
	constructor() {
		super();
		this.shape = "";
		/** @type {{sink: SinkOutcome, stage: StageOutcome, wait: HTMLElement, work: HTMLElement}[]} */
		this.made = [];
		this.end = h("span", {});
	}

	/**
	 * @param {string | null} pipeline
	 * @param {StageOutcome[]} stages
	 * @param {number} begun
	 * @param {number} now
	 * @param {boolean} final
	 */
	draw(pipeline, stages, begun, now, final) {
		const shape = JSON.stringify([pipeline, stages, begun, final]);
		if (shape !== this.shape) this.#build(pipeline, stages, begun, final);
		this.shape = shape;
		this.#move(begun, now, final);
	}

	/**
	 * @param {string | null} pipeline
	 * @param {StageOutcome[]} stages
	 * @param {number} begun
	 * @param {boolean} final
	 */
	#build(pipeline, stages, begun, final) {
		this.made = stages.flatMap((stage) =>
			stage.sinks.map((sink) => ({
				sink,
				stage,
				wait: h("div", { class: "bar wait" }),
				work: h("div", { class: "bar work" }),
			})),
		);
		this.end = h("span", {});
		const rows = [
			this.#row(
				"accepted",
				h("span", {}, "accepted"),
				"",
				[],
				time(new Date(begun).toISOString(), true),
			),
			...stages.flatMap((stage) => [
				this.#stage(pipeline, stage),
				...this.made.filter((each) => each.stage === stage).map((each) => this.#sink(each, begun)),
			]),
		];
		this.replaceChildren(
			h("div", { class: "rows", role: "list" }, ...rows),
			h(
				"div",
				{ class: "row axis quiet" },
				h("div", {}),
				h("div", { class: "ends" }, h("span", {}, "0"), this.end),
			),
		);
	}

	/**
	 * What goes on grows: nothing but widths and a number changes, so links stay where they are.
	 * @param {number} begun
	 * @param {number} now
	 * @param {boolean} final
	 */
	#move(begun, now, final) {
		const drawn = this.made.map((each) => ({
			...each,
			found: bars(each.sink, each.stage, begun, now),
		}));
		const ends = drawn.flatMap(({ found }) => [found.wait?.end ?? begun, found.work?.end ?? begun]);
		const end = Math.max(begun + 1, ...ends);
		for (const { found, wait, work } of drawn) {
			place(wait, found.wait, begun, end);
			place(work, found.work, begun, end);
		}
		say(this.end, `${final ? "" : "now, after "}${duration(end - begun)}`);
	}

	/**
	 * @param {string} kind
	 * @param {Node} name
	 * @param {string} tone
	 * @param {HTMLElement[]} drawn
	 * @param {Node | string} said
	 */
	#row(kind, name, tone, drawn, said) {
		return h(
			"div",
			{ class: `row ${kind}`, role: "listitem", "data-tone": tone || null },
			h("div", { class: "who" }, name),
			h("div", { class: "track" }, ...drawn),
			h("div", { class: "said" }, said),
		);
	}

	/**
	 * @param {string | null} pipeline
	 * @param {StageOutcome} stage
	 */
	#stage(pipeline, stage) {
		const name = pipeline
			? h(
					"a",
					{ href: `${toPipeline(pipeline)}?stage=${encodeURIComponent(stage.stage)}` },
					stage.stage,
				)
			: h("strong", {}, stage.stage);
		const batch = stage.batch === null ? spelled(stage.state) : `batch ${stage.batch}`;
		const said = stage.blocked_by ? `blocked: ${spelled(stage.blocked_by)}` : batch;
		const tone = stage.blocked_by || stage.state === "lost" ? "bad" : "";
		return this.#row("stage", name, tone, [], said);
	}

	/**
	 * @param {WaybillWaterfall["made"][0]} made
	 * @param {number} begun
	 */
	#sink({ sink, stage, wait, work }, begun) {
		const done = bars(sink, stage, begun, begun).work;
		return this.#row(
			"sink",
			h("span", {}, sink.name),
			toneOf(sink, stage),
			[wait, work],
			said(sink, done, begun),
		);
	}
}

/**
 * @param {HTMLElement} element
 * @param {Bar | null} bar
 * @param {number} begun
 * @param {number} end
 */
function place(element, bar, begun, end) {
	set(element, "hidden", bar === null);
	if (!bar) return;
	const share = (/** @type {number} */ at) => (100 * (at - begun)) / (end - begun);
	set(element, "data-tone", bar.tone);
	element.style.setProperty("left", `${share(bar.start)}%`);
	element.style.setProperty("width", `${Math.max(0.4, share(bar.end) - share(bar.start))}%`);
}

/**
 * @param {SinkOutcome} sink
 * @param {Bar | null} work
 * @param {number} begun
 */
function said(sink, work, begun) {
	if (sink.state === "committed" && work) {
		const took = `after ${duration(work.end - begun)}, ${duration(work.end - work.start)} of it in the batch`;
		const rows = sink.batch_rows === null ? "" : ` of ${count(sink.batch_rows, "row")}`;
		const often = sink.guarantee && sink.guarantee !== "once" ? `, ${spelled(sink.guarantee)}` : "";
		return h(
			"span",
			{},
			"visible ",
			time(new Date(work.end).toISOString(), true),
			` ${took}${rows}${often}`,
		);
	}
	if (sink.state === "committed") return "visible; its batch is too old to be remembered";
	if (sink.state !== "waiting") return spelled(sink.state);
	const why = sink.message ?? (sink.blocked_by ? spelled(sink.blocked_by) : "");
	return `${count(sink.behind, "record")} still to come${why ? `: ${why}` : ""}`;
}

customElements.define("waybill-waterfall", WaybillWaterfall);
