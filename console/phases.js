/** Chooses pipelines by their phase, and says how many there are in each. */

import { h, say, set } from "./dom.js";
import { phases, toneOfPhase } from "./words.js";

const TROUBLE = "trouble"; // no phase: what is wrong in any

/**
 * @param {string} wanted
 * @param {() => void} changed
 */
export function phasePart(wanted, changed) {
	const names = [TROUBLE, ...phases()];
	const options = names.map((each) => h("option", { value: each }));
	const element = h(
		"select",
		{ "aria-label": "Phase", onchange: changed },
		h("option", { value: "" }, "any phase"),
		...options,
	);
	element.value = names.includes(wanted) ? wanted : "";

	/** @param {Summary[]} pipelines */
	function show(pipelines) {
		for (const option of options) {
			const number = pipelines.filter((each) => fitsPhase(each, option.value)).length;
			const word = option.value === TROUBLE ? "in trouble" : option.value;
			say(option, number ? `${word} (${number})` : word);
			set(option, "hidden", !number && option.value !== element.value);
		}
	}
	return {
		element,
		show,
		value: () => element.value,
		clear: () => void (element.value = ""),
		fits: (/** @type {Summary} */ each) => fitsPhase(each, element.value),
	};
}

/**
 * Pure.
 * @param {Summary} pipeline
 * @param {string} wanted
 */
export function fitsPhase({ phase, stuck }, wanted) {
	if (wanted === TROUBLE) return toneOfPhase(phase, stuck !== null) === "bad";
	return wanted === "" || phase === wanted;
}
