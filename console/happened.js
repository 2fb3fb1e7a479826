/** What happened to a pipeline, newest first, as far back as somebody asks for. */

import { pipelinePath } from "./api.js";
import { h, keep, time } from "./dom.js";
import { paged } from "./paged.js";
import { spelled } from "./words.js";

const PAGE = 100;

/**
 * @param {string} name
 * @param {AbortSignal} signal
 */
export function happenedPart(name, signal) {
	const lines = h("ol", { class: "events", tabindex: 0, "aria-label": "what happened" });
	const list = paged({
		path: `${pipelinePath(name)}/events`,
		one: "event",
		first: PAGE,
		further: PAGE,
		signal,
		draw: (/** @type {any[]} */ items) =>
			keep(
				lines,
				items,
				(each) => each.id,
				eventLine,
				() => {},
			),
	});
	const element = h("section", {}, h("h2", {}, "What happened"), lines, list.element);
	return { element, look: list.look };
}

/** @param {any} event */
function eventLine(event) {
	const what = {
		transition: [event.phase_from, event.phase].filter(Boolean).join(" → "),
		claim: "claimed by a runner",
		schedule: "time of its schedule",
		blocked: event.blocked_by ? `waits: ${spelled(event.blocked_by)}` : "no longer waits",
		maintenance: event.maintenance
			? `${event.maintenance.task} of ${event.maintenance.sink}`
			: "maintenance",
	};
	const named = /** @type {Record<string, string>} */ (what)[event.kind] ?? event.kind;
	const error = event.kind === "transition" ? event.error : null;
	const done = event.maintenance
		? Object.entries(event.maintenance.done)
				.map(([name, value]) => `${value} ${name}`)
				.join(", ")
		: event.reason;
	const reason = done === error?.message ? null : done; // the error says it, with a hint
	return h(
		"li",
		{ "data-tone": error ? "bad" : null },
		time(event.at),
		" ",
		h("strong", {}, named),
		reason ? ` ${reason}` : null,
		error
			? h("div", { class: "why" }, [error.message, error.hint].filter(Boolean).join(" — "))
			: null,
		event.actor && event.actor !== "stage_runner"
			? h("span", { class: "quiet" }, ` by ${event.actor}`)
			: null,
	);
}
