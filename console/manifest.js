/** The manifest of a pipeline, and what has changed since an earlier one. */

import { ask, pipelinePath } from "./api.js";
import { diff } from "./diff.js";
import { fill, h, say, set, trouble } from "./dom.js";
import { live } from "./live.js";
import { inZone } from "./words.js";

/**
 * @param {string} name
 * @param {HTMLElement} change a link to its editor
 */
export function manifestPart(name, change) {
	const text = h("pre", { tabindex: 0 });
	const since = h("select", { onchange: draw });
	const chosen = h("label", { hidden: true }, "What has changed since ", since);
	const statusLine = h("div", {});
	const element = h(
		"details",
		{ ontoggle: read },
		h("summary", {}, "Manifest"),
		h("div", { class: "actions" }, change, chosen),
		statusLine,
		text,
	);
	/** @type {ManifestVersion[]} */
	let earlier = [];
	let now = "";
	let generation = 0;

	async function read() {
		if (!element.open) return;
		try {
			const { items } = await ask(`${pipelinePath(name)}/manifests`);
			earlier = items.slice(1);
			fill(statusLine);
		} catch (error) {
			fill(statusLine, trouble(error));
		}
		const before = since.value;
		fill(since, h("option", { value: "" }, "nothing: show all of it"), ...earlier.map(option));
		since.value = earlier.some((each) => String(each.generation) === before) ? before : "";
		chosen.hidden = earlier.length === 0;
		draw();
	}

	function draw() {
		const other = earlier.find((each) => String(each.generation) === since.value);
		set(text, "class", other ? "diff" : null);
		if (!other) return say(text, now);
		fill(text, ...diff(other.manifest, now).map(line));
	}

	/** @param {any} detail */
	function show(detail) {
		if (detail.generation === generation) return;
		generation = detail.generation;
		now = detail.manifest;
		draw();
		void read();
	}
	return { element, show };
}

/** @param {ManifestVersion} each */
function option(each) {
	const until = each.until
		? `, until ${inZone(new Date(each.until), false, new Date(live.now()))}`
		: "";
	return h("option", { value: each.generation }, `generation ${each.generation}${until}`);
}

/** @param {DiffLine} each */
function line({ sign, text }) {
	const name = sign === "+" ? "ins" : sign === "-" ? "del" : "span";
	return h(name, {}, `${sign} ${text}`);
}
