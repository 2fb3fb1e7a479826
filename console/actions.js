/** What can be done with a pipeline: only what the key may do, and what makes sense now. */

import { carryOut, pipelinePath } from "./api.js";
import { announce, confirmed, fill, h, notice, set, trouble } from "./dom.js";
import { live } from "./live.js";
import { ENDING_PHASES, STOPS } from "./meanings.js";
import { go } from "./router.js";
import { count } from "./words.js";

/** @type {Record<string, Action>} */
const ACTIONS = {
	start: { word: "Start", running: "Starting…", method: "POST", path: "/start" },
	resume: { word: "Resume", running: "Resuming…", method: "POST", path: "/resume" },
	pause: { word: "Pause", running: "Pausing…", method: "POST", path: "/pause" },
	stop: { word: "Stop", running: "Stopping…", method: "POST", path: "/stop" },
	restart: { word: "Restart", running: "Restarting…", method: "POST", path: "/restart" },
	delete: { word: "Delete", running: "Deleting…", method: "DELETE", path: "", danger: true },
};

const AT_ONCE = "force";
const WITHOUT_DRIVER = ["Created", "Stopped", "Finished", "Failed"]; // there one way is as another
/** @type {Way[]} other ways than the usual one */
const WAYS = [
	{
		of: "stop",
		action: {
			word: "Drain, then stop",
			running: "Draining…",
			method: "POST",
			path: "/stop?mode=drain",
		},
		meaning: STOPS.drain,
	},
	{
		of: "stop",
		action: {
			word: "Stop at once",
			running: "Stopping…",
			method: "POST",
			path: `/stop?mode=${AT_ONCE}`,
		},
		meaning: STOPS.force,
	},
	{
		of: "restart",
		action: {
			word: "Restart at once",
			running: "Restarting…",
			method: "POST",
			path: `/restart?mode=${AT_ONCE}`,
		},
		meaning: STOPS.force,
	},
];

/**
 * Lists the actions that a button is made for: those that are allowed now.
 * @param {Pick<Summary, "allowed_actions">} pipeline
 * @returns {string[]} names of actions
 */
export function possible({ allowed_actions }) {
	return Object.keys(ACTIONS).filter((name) => allowed_actions.includes(name));
}

/**
 * Lists the other ways in which what is allowed can be done now. While its driver ends, these are
 * those that are stronger.
 * @param {Pick<Summary, "phase" | "allowed_actions">} pipeline
 * @param {Action} [going] what goes on
 * @returns {Way[]}
 */
export function waysOf({ phase, allowed_actions }, going) {
	if (WITHOUT_DRIVER.includes(phase)) return [];
	const ways = WAYS.filter(({ of }) => allowed_actions.includes(of));
	if (!going && !(phase in ENDING_PHASES)) return ways;
	const stronger = ways.filter(({ action }) => action !== going && action.path.endsWith(AT_ONCE));
	return stronger.filter(({ of }) => !going || going.path.startsWith(ACTIONS[of].path));
}

/**
 * @param {HTMLElement} place
 * @param {Summary} pipeline
 * @param {() => void} changed
 */
export function actions(place, pipeline, changed) {
	const names = live.may("admin") ? possible(pipeline) : [];
	const ways = names.length ? waysOf(pipeline) : [];
	const shown = [...names, ...ways.map(({ action }) => action.word)].join();
	if (place.getAttribute("data-names") === shown || place.hasAttribute("data-busy")) return;
	set(place, "data-names", shown);
	fill(
		place,
		...names.map((name) => button(place, pipeline, ACTIONS[name], changed)),
		ways.length > 0 &&
			h(
				"details",
				{ class: "ways" },
				h("summary", {}, "Other ways"),
				h("dl", {}, ...ways.flatMap((way) => wayLines(place, pipeline, way, changed))),
			),
	);
}

/**
 * @param {HTMLElement} place
 * @param {Summary} pipeline
 * @param {Way} way
 * @param {() => void} changed
 */
function wayLines(place, pipeline, { action, meaning }, changed) {
	return [
		h("dt", {}, button(place, pipeline, action, changed)),
		h("dd", { class: "quiet" }, meaning),
	];
}

/**
 * @param {HTMLElement} place
 * @param {Summary} pipeline
 * @param {Action} action
 * @param {() => void} changed
 */
function button(place, pipeline, action, changed) {
	return h(
		"button",
		{
			type: "button",
			class: action.danger ? "danger" : "",
			onclick: () => void act(place, pipeline, action, changed),
		},
		action.word,
	);
}

let turn = 0; // a stop that goes on can be overtaken by a stronger one

/**
 * @param {HTMLElement} place
 * @param {Summary} pipeline
 * @param {Action} action
 * @param {() => void} changed
 */
async function act(place, pipeline, action, changed) {
	const { name, uid } = pipeline;
	const costs = lossesOf(lagNow(uid));
	if (action.danger && !(await confirmed(`Delete ${name}?`, costs, "Delete it"))) return;
	const mine = String(++turn);
	set(place, "data-busy", mine);
	fill(
		place,
		h("span", { class: "busy", role: "status" }, action.running),
		...waysOf(pipeline, action).map((way) => button(place, pipeline, way.action, changed)),
	);
	const { failed, warnings } = await carriedOut(name, action);
	await live.look();
	if (place.getAttribute("data-busy") !== mine) return; // what overtook it says what became of it
	if (warnings.length) notice(`${action.word} of ${name}: `, warnings.join(" "));
	if (!place.isConnected)
		return notice(`${action.word} of ${name}: `, failed ? trouble(failed) : "done.");
	if (action.danger && !failed) return go("/");
	if (failed)
		fill(
			place,
			trouble(failed),
			h(
				"button",
				{ type: "button", class: "small", onclick: () => redraw(place, name, changed) },
				"Close",
			),
		);
	else redraw(place, name, changed);
}

/**
 * @param {string} name
 * @param {Action} action
 * @returns {Promise<{failed: unknown, warnings: string[]}>}
 */
async function carriedOut(name, { word, method, path }) {
	try {
		const wait = path.includes("?") ? "&wait=10" : "?wait=10";
		const operation = await carryOut(`${pipelinePath(name)}${path}${wait}`, { method });
		announce(`${word} of ${name}: done`);
		return { failed: null, warnings: operation.warnings ?? [] };
	} catch (error) {
		return { failed: error, warnings: [] };
	}
}

/**
 * @param {HTMLElement} place
 * @param {string} name
 * @param {() => void} changed
 */
function redraw(place, name, changed) {
	set(place, "data-names", null);
	set(place, "data-busy", null);
	const pipeline = live.pipeline(name);
	if (pipeline) actions(place, pipeline, changed);
	changed();
}

/** @param {string} uid */
function lagNow(uid) {
	return live.figures.stale ? null : live.figures.pending(uid); // an old figure would promise too much
}

/**
 * What a deletion costs, and what stays.
 * @param {number | null} lag records that are not processed; null: that is not known now
 */
export function lossesOf(lag) {
	const lost =
		lag === null
			? "What it has not processed"
			: lag === 0
				? "Nothing is unfinished now; what comes meanwhile"
				: `What it has not processed, about ${count(lag, "record")},`;
	return [
		`${lost} ends as lost: tokens of it say so, for good.`,
		"Topics and tables stay as they are. Its name is free again. This cannot be undone.",
	];
}
