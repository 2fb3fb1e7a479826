/** The way of a token through the stages of one pipeline, over time: `<waybill-waterfall>`. */

import { bars, toneOf } from "./bars.js";
import { h, say, set, time } from "./dom.js";
import { FINAL, sinkSaid, stageSaid } from "./outcome.js";
import { toPipeline } from "./router.js";
import { duration } from "./words.js";

export class WaybillWaterfall extends HTMLElement {
	constructor() {
		super();
		this.shape = "";
		/** @type {{sink: SinkOutcome, stage: StageOutcome, part: any, outcome: any, wait: HTMLElement, work: HTMLElement}[]} */
		this.made = [];
		this.end = h("span", {});
	}

	/**
	 * @param {string | null} pipeline
	 * @param {any} part of the outcome, which is that pipeline's
	 * @param {any} outcome
	 * @param {number} now
	 */
	draw(pipeline, part, outcome, now) {
		const issuedAt = Date.parse(outcome.issued_at);
		const shape = JSON.stringify([pipeline, part.stages, issuedAt, part.dead_count, part.dropped]);
		if (shape !== this.shape) this.#build(pipeline, part, outcome);
		this.shape = shape;
		this.#move(issuedAt, now, FINAL.includes(part.outcome));
	}

	/**
	 * @param {string | null} pipeline
	 * @param {any} part
	 * @param {any} outcome
	 */
	#build(pipeline, part, outcome) {
		/** @type {StageOutcome[]} */
		const stages = part.stages;
		const issuedAt = Date.parse(outcome.issued_at);
		this.made = stages.flatMap((stage) =>
			stage.sinks.map((sink) => ({
				sink,
				stage,
				part,
				outcome,
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
				time(new Date(issuedAt).toISOString(), true),
			),
			...stages.flatMap((stage) => [
				this.#stage(pipeline, stage),
				...this.made.filter((each) => each.stage === stage).map((each) => this.#sink(each)),
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
	 * @param {number} issuedAt
	 * @param {number} now
	 * @param {boolean} final
	 */
	#move(issuedAt, now, final) {
		const drawn = this.made.map((each) => ({
			...each,
			found: bars(each.sink, each.stage, issuedAt, now),
		}));
		const ends = drawn.flatMap(({ found }) => [found.wait?.end ?? issuedAt, found.work?.end ?? issuedAt]);
		const end = Math.max(issuedAt + 1, ...ends);
		for (const { found, wait, work } of drawn) {
			place(wait, found.wait, issuedAt, end);
			place(work, found.work, issuedAt, end);
		}
		say(this.end, `${final ? "" : "now, after "}${duration(end - issuedAt)}`);
	}

	/**
	 * @param {string} kind
	 * @param {Node} name
	 * @param {string} tone
	 * @param {HTMLElement[]} drawn
	 * @param {...Child} said
	 */
	#row(kind, name, tone, drawn, ...said) {
		return h(
			"div",
			{ class: `row ${kind}`, role: "listitem", "data-tone": tone || null },
			h("div", { class: "who" }, name),
			h("div", { class: "track" }, ...drawn),
			h("div", { class: "said" }, ...said),
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
		const tone = stage.blocked_by || stage.state === "lost" ? "bad" : "";
		return this.#row("stage", name, tone, [], stageSaid(stage));
	}

	/** @param {WaybillWaterfall["made"][0]} made */
	#sink(made) {
		const { sink, stage, wait, work, outcome } = made;
		const issuedAt = Date.parse(outcome.issued_at);
		const done = bars(sink, stage, issuedAt, issuedAt).work;
		const at = done && time(new Date(done.end).toISOString(), true);
		return this.#row(
			"sink",
			h("span", {}, sink.name),
			toneOf(sink, stage),
			[wait, work],
			...sinkSaid(made, done, at),
		);
	}
}

/**
 * @param {HTMLElement} element
 * @param {Bar | null} bar
 * @param {number} issuedAt
 * @param {number} end
 */
function place(element, bar, issuedAt, end) {
	set(element, "hidden", bar === null);
	if (!bar) return;
	const share = (/** @type {number} */ at) => (100 * (at - issuedAt)) / (end - issuedAt);
	set(element, "data-tone", bar.tone);
	element.style.setProperty("left", `${share(bar.start)}%`);
	element.style.setProperty("width", `${Math.max(0.4, share(bar.end) - share(bar.start))}%`);
}

customElements.define("waybill-waterfall", WaybillWaterfall);
