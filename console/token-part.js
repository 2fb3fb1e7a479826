/** The way of a token through one pipeline: stages over time, what to read it with, what of it died or was lost. */

import { fill, h, line, set } from "./dom.js";
import {
	blockedSaid,
	deadHeading,
	deadPlace,
	deathSaid,
	droppedSaid,
	lossSaid,
	reasonMeant,
	versionSaid,
} from "./outcome.js";
import { toDead, toPipeline } from "./router.js";
import { readsOf } from "./samples.js";
import { WaybillWaterfall } from "./waterfall.js";
import { spelled, toneOfOutcome } from "./words.js";

const DEAD_SHOWN = 100;

/**
 * @param {string | null} pipeline
 * @param {boolean} named
 */
export function partView(pipeline, named) {
	const waterfall = new WaybillWaterfall();
	const blocked = h("div", { class: "why" });
	const reads = h("div", {});
	const dead = h("div", {});
	const lost = h("div", {});
	const name = pipeline ? h("a", { href: toPipeline(pipeline) }, pipeline) : null;
	const head = h(named ? "h2" : "p", { class: "part" }, named ? "" : "Pipeline ", name);
	const element = h(
		"section",
		{ "aria-label": pipeline ? `pipeline ${pipeline}` : "way" },
		pipeline ? head : null,
		waterfall,
		blocked,
		reads,
		lost,
		dead,
	);
	let drawnLists = "";
	return {
		element,
		/**
		 * @param {any} part
		 * @param {any} outcome
		 * @param {Map<string, any>} sinks
		 * @param {number} now
		 */
		draw(part, outcome, sinks, now) {
			set(element, "data-tone", toneOfOutcome(part.outcome));
			if (part.stages.length) waterfall.draw(pipeline, part, outcome, now);
			const stuck = part.stages.find((/** @type {any} */ stage) => stage.blocked_by);
			const why = stuck ? blockedSaid(stuck) : "";
			if (blocked.getAttribute("data-why") !== why) {
				set(blocked, "data-why", why);
				const where =
					pipeline && stuck
						? h(
								"a",
								{ href: `${toPipeline(pipeline)}?stage=${encodeURIComponent(stuck.stage)}` },
								"See the stage",
							)
						: null;
				fill(blocked, why ? `${why} ` : null, why ? where : null);
			}
			const lists = JSON.stringify([
				part.stages.map((/** @type {any} */ s) => s.sinks),
				part.dead,
				part.lost,
				sinks.size,
			]);
			if (lists === drawnLists) return;
			drawnLists = lists;
			fill(reads, ...readLines(part, sinks));
			fill(lost, ...lostLines(part));
			fill(dead, ...deadLines(part, pipeline, outcome));
		},
	};
}

/**
 * @param {any} part
 * @param {Map<string, any>} sinks
 */
function readLines(part, sinks) {
	return part.stages.flatMap((/** @type {any} */ stage) =>
		stage.sinks
			.filter((/** @type {any} */ sink) => sink.state === "committed" && sink.version)
			.flatMap((/** @type {any} */ sink) => {
				const target = sinks.get(`${stage.stage}/${sink.name}`)?.target ?? null;
				const heading = h("h3", {}, `Read it in ${sink.name}`);
				if (sink.detail === "version_expired")
					return [heading, h("p", { class: "why" }, versionSaid(sink.detail))];
				const reads = readsOf(sink.version, target);
				return [heading, ...reads.map(({ label, text }) => line(label, text))];
			}),
	);
}

/** @param {any} part */
function lostLines(part) {
	if (!part.lost?.length) return [];
	const rows = part.lost.map((/** @type {any} */ each) =>
		h(
			"li",
			{},
			`${each.topic}[${each.partition}] offsets ${each.start} to ${each.end - 1}: `,
			lossSaid(each.reason),
		),
	);
	return [h("h3", {}, "Lost"), h("ul", {}, ...rows)];
}

/**
 * @param {any} part
 * @param {string | null} pipeline
 * @param {any} outcome
 */
function deadLines(part, pipeline, outcome) {
	const dropped = (part.dropped ?? []).map((/** @type {any} */ each) =>
		h("li", {}, droppedSaid(each)),
	);
	if (!part.dead?.length && !dropped.length) return [];
	const rows = (part.dead ?? []).slice(0, DEAD_SHOWN).map((/** @type {any} */ each) => {
		const where = deadPlace(each);
		const link =
			each.id && pipeline
				? h("a", { href: `${toDead(pipeline)}?id=${encodeURIComponent(each.id)}` }, where)
				: where;
		return h(
			"li",
			{},
			link,
			": ",
			h("strong", { title: reasonMeant(each.reason) }, spelled(each.reason)),
			deathSaid(each),
		);
	});
	const more = (part.dead?.length ?? 0) - rows.length;
	const cut = outcome.dead_truncated || more > 0 ? h("li", { class: "quiet" }, "and more") : null;
	const heading = part.dead_count ? deadHeading(part, outcome) : "Dropped";
	return [h("h3", {}, heading), h("ul", { class: "dead" }, ...rows, cut, ...dropped)];
}
