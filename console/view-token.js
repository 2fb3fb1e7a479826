/** Where a record is: the way of its token, drawn as it goes. */

import { ask, pipelinePath, post, Problem } from "./api.js";
import { announce, copier, fill, h, say, set, time, trouble } from "./dom.js";
import { live } from "./live.js";
import { go, toToken } from "./router.js";
import { FINAL, leadOf } from "./outcome.js";
import { partView } from "./token-part.js";
import { duration, spelled, toneOfOutcome } from "./words.js";

const PATH_CHARACTERS_MAX = 4_096; // a longer token is no address
const AGAIN_MS = 1_000;
const DRAW_MS = 200;
const LEARN_MS = 5_000;

/** @returns {View} */
export function askView() {
	const place = h("div", {});
	const element = h(
		"div",
		{},
		h("h1", {}, "Where is it?"),
		tokenForm((token) => open(token)),
		positionForm(),
		place,
	);
	/** @type {(() => void) | undefined} */
	let end;

	/** @param {string} token */
	function open(token) {
		if (token.length <= PATH_CHARACTERS_MAX) return go(toToken(token));
		end?.();
		const view = tokenView(token);
		end = view.close;
		fill(place, view.element);
	}

	return { element, title: "Token", close: () => end?.() };
}

/** @param {(token: string) => void} open */
function tokenForm(open) {
	const text = h("input", {
		type: "text",
		name: "token",
		"aria-label": "Token",
		placeholder: "wb1.…",
		autocomplete: "off",
		spellcheck: false,
		required: true,
	});
	const submit = (/** @type {Event} */ event) => {
		event.preventDefault();
		if (text.value.trim()) open(text.value.trim());
	};
	return h(
		"form",
		{ class: "ask", onsubmit: submit },
		h("label", {}, "By its token ", text),
		h("button", { type: "submit" }, "Follow it"),
	);
}

/** By the position of a record in Kafka. */
function positionForm() {
	const pipeline = h("select", { "aria-label": "Pipeline", onchange: () => void topics() });
	const topic = h("select", { "aria-label": "Topic" });
	const partition = h("input", {
		type: "number",
		min: 0,
		value: 0,
		"aria-label": "Partition",
		required: true,
	});
	const offset = h("input", { type: "number", min: 0, "aria-label": "Offset", required: true });
	const statusLine = h("div", {});

	async function topics() {
		try {
			const { inputs } = await ask(pipelinePath(pipeline.value));
			fill(topic, ...inputs.map((/** @type {any} */ each) => h("option", {}, each.topic)));
		} catch (error) {
			fill(statusLine, trouble(error));
		}
	}

	/** @param {Event} event */
	async function submit(event) {
		event.preventDefault();
		const position = {
			topic: topic.value,
			partition: partition.valueAsNumber,
			offset: offset.valueAsNumber,
		};
		try {
			const { token } = await post("/v1/tokens", {
				pipeline: pipeline.value,
				positions: [position],
			});
			go(toToken(token));
		} catch (error) {
			fill(statusLine, trouble(error));
		}
	}

	const form = h(
		"form",
		{ class: "ask", onsubmit: submit },
		h("label", {}, "Or by its position: ", pipeline),
		topic,
		h("label", {}, "partition ", partition),
		h("label", {}, "offset ", offset),
		h("button", { type: "submit" }, "Follow it"),
		statusLine,
	);
	void live.look().then(() => {
		set(form, "hidden", !live.may("write") || live.pipelines.length === 0);
		fill(pipeline, ...live.pipelines.map((each) => h("option", {}, each.name)));
		if (live.pipelines.length) void topics();
	});
	return form;
}

/**
 * @param {string} token
 * @returns {View}
 */
export function tokenView(token) {
	const state = h("h1", { class: "outcome" }, "…");
	const statusLine = h("p", { class: "lead" });
	const broken = h("div", {});
	const parts = h("div", {});
	const shown = token.length > 60 ? `${token.slice(0, 40)}…${token.slice(-12)}` : token;
	const element = h(
		"div",
		{ class: "token" },
		state,
		statusLine,
		broken,
		parts,
		h(
			"details",
			{},
			h("summary", {}, "The token"),
			h("p", {}, h("code", {}, shown), " ", copier(token, "the token")),
		),
	);
	/** @type {any} */
	let outcome = null;
	let end = () => {};
	let over = false;
	let gone = false; // the stream, for now
	/** @type {Map<string, any>} what is known of the sinks of each pipeline, for the lines to copy */
	const sinks = new Map();
	/** @type {ReturnType<typeof partView>[]} */
	let views = [];
	let named = "";

	/** @param {any} next */
	function take(next) {
		fill(broken);
		gone = false;
		if (outcome?.outcome !== next.outcome) announce(`token: ${spelled(next.outcome)}`);
		outcome = next;
		over = FINAL.includes(next.outcome);
		const several = next.parts ?? [next];
		const names = several.map((/** @type {any} */ part) => part.pipeline).join();
		if (views.length !== several.length || names !== named) {
			named = names;
			views = several.map((/** @type {any} */ part) => partView(part.pipeline, several.length > 1));
			fill(parts, ...views.map((each) => each.element));
			several.forEach((/** @type {any} */ part) => void learn(part.pipeline));
		}
		draw();
	}

	/** @param {string | null} pipeline */
	async function learn(pipeline) {
		if (!pipeline || sinks.has(pipeline)) return;
		try {
			const detail = await ask(pipelinePath(pipeline));
			const found = detail.stages.flatMap((/** @type {any} */ stage) =>
				stage.sinks.map((/** @type {any} */ sink) => [`${stage.name}/${sink.name}`, sink]),
			);
			sinks.set(pipeline, new Map(found));
			draw();
		} catch (error) {
			if (error instanceof Problem && error.status < 500) return; // it was deleted, or the key may not read: the lines are left out
			setTimeout(() => element.isConnected && void learn(pipeline), LEARN_MS);
		}
	}

	function draw() {
		if (!outcome) return;
		const kind = outcome.outcome;
		say(state, spelled(kind));
		set(element, "data-tone", toneOfOutcome(kind));
		showLead(outcome, live.now());
		const several = outcome.parts ?? [outcome];
		views.forEach((view, i) =>
			view.draw(several[i], outcome, sinks.get(several[i].pipeline) ?? new Map(), live.now()),
		);
	}

	const ago = h("span", {});
	let led = "";

	/**
	 * @param {any} outcome
	 * @param {number} now
	 */
	function showLead(outcome, now) {
		const shown = JSON.stringify([
			outcome.outcome,
			outcome.reason,
			outcome.accepted,
			outcome.issued_at,
			outcome.completed_at,
			outcome.dead_count,
			outcome.dropped,
		]);
		if (shown !== led) fill(statusLine, ...leadOf(outcome, time(outcome.issued_at, true), ago));
		led = shown;
		if (outcome.outcome === "in_progress") say(ago, duration(now - Date.parse(outcome.issued_at)));
	}

	/** @param {unknown} error */
	function lost(error) {
		gone = error !== null;
		if (!error) return fill(broken);
		const body = error instanceof Problem ? error.body : {};
		if (body.outcome === "unknown")
			return take({ stages: [], lost: [], dead: [], dead_count: 0, dropped: [], ...body });
		if (error instanceof Problem && error.status < 500 && error.status !== 429) {
			say(state, outcome ? spelled(outcome.outcome) : "not to be followed");
			set(element, "data-tone", "doubt");
		}
		fill(broken, trouble(error));
	}

	const timer = setInterval(() => {
		const old = !over && (gone || (live.known && live.stale));
		set(element, "data-old", old);
		if (outcome && !over && !old) draw();
	}, DRAW_MS);

	if (token.length > PATH_CHARACTERS_MAX) end = poll(token, take, lost);
	else {
		end = live.follow(`/v1/tokens/${encodeURIComponent(token)}`, {
			receive: (event) => {
				if (event.name === "outcome") take(event.data);
				if (over) setTimeout(() => end(), 0); // the stream of all goes on
			},
			lost,
			over: () => over,
		});
	}
	return {
		element,
		title: "Token",
		close: () => {
			clearInterval(timer);
			end();
		},
	};
}

/**
 * One that is too long for an address.
 * @param {string} token
 * @param {(outcome: any) => void} take
 * @param {(error: unknown) => void} lost
 */
function poll(token, take, lost) {
	let ended = false;
	const turn = async () => {
		if (document.hidden) return void setTimeout(turn, AGAIN_MS);
		try {
			const { outcomes } = await post("/v1/tokens/query", { tokens: [token] });
			if (outcomes[0].error) return lost(new Problem(outcomes[0].error.status, outcomes[0].error));
			take(outcomes[0]);
			if (FINAL.includes(outcomes[0].outcome)) return;
		} catch (error) {
			lost(error);
		}
		if (!ended) setTimeout(turn, AGAIN_MS);
	};
	void turn();
	return () => {
		ended = true;
	};
}
