/** Chooses pipelines by tags of their manifests: Waybill is asked which have them. */

import { all } from "./api.js";
import { fill, h, trouble } from "./dom.js";

/**
 * @param {string} wanted
 * @param {AbortSignal} signal
 * @param {() => void} changed
 * @param {() => void} found
 */
export function tagPart(wanted, signal, changed, found) {
	const element = h("input", {
		type: "search",
		class: "tag",
		placeholder: "Tag",
		"aria-label": "Tags, separated by commas",
		onchange: () => {
			choose(element.value);
			changed();
		},
	});
	const fault = h("div", {});
	/** @type {string[]} */
	let tags = [];
	let asked = ""; // what the answer is of
	let waits = false; // for the first answer about these tags
	/** @type {Set<string>} uids */
	let tagged = new Set();
	choose(wanted);

	/** @param {string} text */
	function choose(text) {
		element.value = text;
		tags = tagsIn(text);
		waits = tags.length > 0;
		asked = "";
		fill(fault);
	}

	/**
	 * Ask again if other tags are wanted, or a manifest has changed.
	 * @param {Summary[]} pipelines
	 */
	function show(pipelines) {
		const now = pipelines.map((each) => `${each.uid} ${each.generation}`).join();
		if (!tags.length || now === asked) return;
		asked = now;
		void ask(tags, now);
	}

	/**
	 * @param {string[]} these
	 * @param {string} now
	 */
	async function ask(these, now) {
		const query = new URLSearchParams(these.map((each) => ["tag", each]));
		try {
			const items = await all(`/v1/pipelines?${query}`, signal);
			if (these !== tags || now !== asked) return;
			tagged = new Set(items.map((each) => each.uid));
			fill(fault);
		} catch (error) {
			if (signal.aborted || these !== tags || now !== asked) return;
			tagged = new Set();
			fill(
				fault,
				trouble(error, () => ask(these, now)),
			);
		}
		waits = false;
		found();
	}
	return {
		element,
		fault,
		show,
		waits: () => waits,
		value: () => tags.join(", "),
		clear: () => choose(""),
		fits: (/** @type {Summary} */ { uid }) => tags.length === 0 || tagged.has(uid),
	};
}

/**
 * Pure.
 * @param {string} text
 */
export function tagsIn(text) {
	return text
		.split(",")
		.map((each) => each.trim())
		.filter(Boolean);
}
