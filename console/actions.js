/** What can be done with a pipeline: only what the key may do, and what makes sense now. */

import { carryOut, pipelinePath } from "./api.js";
import { announce, confirmed, fill, h, notice, set, trouble } from "./dom.js";
import { live } from "./live.js";
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

/**
 * Lists the actions that a button is made for: those that are allowed now.
 * @param {Summary} pipeline
 * @returns {string[]} names of actions
 */
export function possible({ allowed_actions }) {
	return Object.keys(ACTIONS).filter((name) => allowed_actions.includes(name));
}

/**
 * @param {HTMLElement} place
 * @param {Summary} pipeline
 * @param {() => void} changed
 */
export function actions(place, pipeline, changed) {
	const names = live.may("admin") ? possible(pipeline) : [];
	if (place.getAttribute("data-names") === names.join() || place.hasAttribute("data-busy")) return;
	set(place, "data-names", names.join());
	fill(place, ...names.map((name) => button(place, pipeline, name, changed)));
}

/**
 * @param {HTMLElement} place
 * @param {Summary} pipeline
 * @param {string} name
 * @param {() => void} changed
 */
function button(place, pipeline, name, changed) {
	const action = ACTIONS[name];
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

/**
 * @param {HTMLElement} place
 * @param {Summary} pipeline
 * @param {Action} action
 * @param {() => void} changed
 */
async function act(place, { name, uid }, action, changed) {
	const costs = lossesOf(behindNow(uid));
	if (action.danger && !(await confirmed(`Delete ${name}?`, costs, "Delete it"))) return;
	set(place, "data-busy", true);
	fill(place, h("span", { class: "busy", role: "status" }, action.running));
	let failed = null;
	try {
		await carryOut(`${pipelinePath(name)}${action.path}?wait=10`, { method: action.method });
		announce(`${action.word} of ${name}: done`);
	} catch (error) {
		failed = error;
	}
	await live.look();
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
function behindNow(uid) {
	return live.figures.stale ? null : live.figures.pending(uid); // an old figure would promise too much
}

/**
 * What a deletion costs, and what stays.
 * @param {number | null} behind records that are not processed; null: that is not known now
 */
export function lossesOf(behind) {
	const lost =
		behind === null
			? "What it has not processed"
			: behind === 0
				? "Nothing is unfinished now; what comes meanwhile"
				: `What it has not processed, about ${count(behind, "record")},`;
	return [
		`${lost} ends as lost: tokens of it say so, for good.`,
		"Topics and tables stay as they are. Its name is free again. This cannot be taken back.",
	];
}
