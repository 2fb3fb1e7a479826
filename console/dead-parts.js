/** Parts that show dead letters: the causes next to a graph, a line for one, and what became of a replay. */

import { ask, pipelinePath, post } from "./api.js";
import { fill, h, say, time, trouble } from "./dom.js";
import { groupPlace, groupsOf, groupTitle } from "./groups.js";
import { toDead, toToken } from "./router.js";
import { count, number, spelled } from "./words.js";

const LOOKED_AT = 100;
const CAUSES_SHOWN = 5;
const AGAIN_MS = 5_000;

/**
 * @param {Group} group
 * @param {boolean} partly whether there may be more of it
 * @param {...Child} doing
 */
export function groupLine(group, partly, ...doing) {
	const { newest } = group;
	return h(
		"li",
		{},
		h("strong", { title: newest.message }, groupTitle(group, partly)),
		h("div", { class: "quiet" }, `${groupPlace(group)}, the newest at `, time(newest.at)),
		h("div", { class: "actions" }, ...doing),
	);
}

/**
 * Where one died, and of what, as cells of a table.
 * @param {any} letter
 */
export function causeCells({ stage, sink, reason, rule, message, value }) {
	return [
		h("td", {}, sink ? `${stage}, ${sink}` : stage),
		h("td", {}, rule ? `${spelled(reason)}: ${rule}` : spelled(reason)),
		h("td", { class: "message" }, message),
		h("td", { class: "value" }, h("code", {}, (value ?? "").slice(0, 120))),
	];
}

/**
 * About how many a pipeline has, and the newest of them by their causes.
 * @param {string} name
 * @param {AbortSignal} signal
 */
export function deadPart(name, signal) {
	const counted = h("a", { href: toDead(name) }, "Dead letters");
	const causes = h("ul", { class: "groups" });
	const element = h(
		"section",
		{ class: "dead-part", "aria-label": "dead letters" },
		h("h2", {}, counted),
		causes,
	);
	let read = 0; // so many there were when the letters were read
	let readAt = -Infinity;

	/** @param {number | null} dead about so many; null: that is not known now */
	function show(dead) {
		const about = dead ? `About ${count(dead, "dead letter")}` : "No dead letters";
		say(counted, dead === null ? "Dead letters" : about);
		const old = dead !== null && dead !== read && performance.now() - readAt > AGAIN_MS;
		if (old) void look(dead);
	}

	/** @param {number} dead */
	async function look(dead) {
		readAt = performance.now();
		try {
			const path = `${pipelinePath(name)}/dead-letters?limit=${LOOKED_AT}`;
			const { items, next_cursor: cursor } = await ask(path, { signal });
			read = dead;
			const groups = groupsOf(items);
			const more = groups.length > CAUSES_SHOWN || cursor !== null;
			fill(
				causes,
				...groups.slice(0, CAUSES_SHOWN).map((each) => groupLine(each, cursor !== null)),
				more ? h("li", { class: "quiet" }, "These are the causes of the newest.") : null,
				items.length ? null : h("li", { class: "quiet" }, "Their topics do not keep them any more."),
			);
		} catch (error) {
			if (!signal.aborted) fill(causes, h("li", {}, trouble(error)));
		}
	}
	return { element, show };
}

/** @param {boolean} again */
export function whatReplaysDo(again) {
	return [
		"What comes of them goes into the sinks that lack it, and no others.",
		again ? "What was replayed before is replayed once more." : "What was replayed before is not replayed again.",
	];
}

/**
 * @param {Resent} sent
 * @param {number} all
 */
export function progressLine({ replayed, already, leftOut }, all) {
	const done = number(replayed + already + leftOut.size);
	return h("p", { class: "busy" }, `${done} of ${count(all, "letter")}…`);
}

/**
 * What was sent, what was not, and one token for all that was.
 * @param {Resent} sent
 * @returns {Promise<Node[]>}
 */
export async function resentLines({ replayed, already, tokens, leftOut, error }) {
	const [reason] = leftOut.values();
	const words = [
		`${count(replayed, "letter")} replayed`,
		already ? `${number(already)} were before` : "",
		leftOut.size ? `${number(leftOut.size)} cannot be replayed: ${reason}` : "",
	];
	const said = h("p", {}, `${words.filter(Boolean).join(", ")}. `);
	try {
		const token =
			tokens.length > 1 ? (await post("/v1/tokens", { merge: tokens })).token : tokens[0];
		if (token) said.append(h("a", { href: toToken(token) }, "Follow their token"));
	} catch (failed) {
		return [said, trouble(failed)];
	}
	return error ? [said, trouble(error)] : [said];
}
