/** A form that sends one record to an input of a pipeline, and leads to its token. */

import { ask, pipelinePath, Problem } from "./api.js";
import { fill, h, notice, trouble } from "./dom.js";
import { live } from "./live.js";
import { go, toToken } from "./router.js";
import { recordOf } from "./samples.js";

/** @param {string} pipeline */
export function sendForm(pipeline) {
	const input = h("select", { "aria-label": "Input", onchange: suggest });
	const text = h("textarea", { rows: 3, spellcheck: false, "aria-label": "Record, as JSON" });
	const button = h("button", { type: "submit" }, "Send, and follow its token");
	const statusLine = h("div", { role: "status", "aria-live": "polite" });
	/** @type {any[]} */
	let inputs = [];

	const form = h(
		"form",
		{ class: "send", onsubmit: send },
		h("div", { class: "tools" }, h("label", {}, "Input ", input), button),
		text,
		statusLine,
	);

	function suggest() {
		const chosen = inputs.find((each) => each.name === input.value);
		text.value = chosen ? recordOf(chosen.columns) : "";
		const json = !chosen || chosen.format === "json" || chosen.format === null;
		fill(
			statusLine,
			json
				? null
				: h(
						"p",
						{ class: "quiet" },
						`Its records are ${chosen.format} in Kafka; here you write JSON.`,
					),
		);
	}

	/** @param {Event} event */
	async function send(event) {
		event.preventDefault();
		button.disabled = true;
		try {
			const path = `${pipelinePath(pipeline)}/inputs/${encodeURIComponent(input.value)}/records?atomic=true`;
			const receipt = await ask(path, { method: "POST", body: text.value });
			if (form.isConnected) go(toToken(receipt.token));
			else
				notice(
					`The record for ${pipeline} was sent: `,
					h("a", { href: toToken(receipt.token) }, "follow its token"),
				);
		} catch (error) {
			const rejected = /** @type {any} */ (error)?.body?.rejected?.[0]?.reason;
			const said = [trouble(error), rejected ? h("p", {}, rejected) : null];
			if (form.isConnected) fill(statusLine, ...said);
			else notice(`The record for ${pipeline} was not sent: `, ...said);
		} finally {
			button.disabled = false;
		}
	}

	async function begin() {
		await live.look();
		if (!live.may("write")) {
			fill(place, h("p", { class: "quiet" }, "To send a record, use a key with the scope write."));
			return live.addEventListener("change", later);
		}
		fill(place, form);
		try {
			inputs = (await ask(pipelinePath(pipeline))).inputs;
			fill(input, ...inputs.map((each) => h("option", { value: each.name }, each.name)));
			suggest();
		} catch (error) {
			if (!(error instanceof Problem && error.status === 404)) fill(statusLine, trouble(error, begin)); // which the view says
		}
	}

	/** With another key, or once it is known what this one may do. */
	function later() {
		if (place.isConnected && !live.may("write")) return;
		live.removeEventListener("change", later);
		if (place.isConnected) void begin();
	}

	const place = h("div", {});
	void begin();
	return place;
}
