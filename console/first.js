/** The first pipeline, step by step: a manifest, a record, its token going green. */

import { carryOut, pipelinePath } from "./api.js";
import { fill, h, notice, trouble } from "./dom.js";
import { live } from "./live.js";
import { FIRST_MANIFEST, nameOf } from "./samples.js";
import { sendForm } from "./send.js";

export function firstPipeline() {
	const text = h("textarea", { rows: 19, spellcheck: false, "aria-label": "The first manifest" });
	text.value = FIRST_MANIFEST;
	const statusLine = h("div", { role: "status", "aria-live": "polite" });
	const next = h("div", {});
	const button = h("button", { type: "button", onclick: apply }, "Apply it");
	const guide = h(
		"section",
		{ class: "first", "aria-label": "The first pipeline" },
		h("h2", {}, "There is no pipeline yet: make the first one"),
		h(
			"p",
			{},
			"Records come from a Kafka topic, go through SQL, and into another topic. Change it if you like.",
		),
		text,
		h("div", { class: "actions" }, button),
		statusLine,
		next,
	);

	async function apply() {
		const name = nameOf(text.value);
		if (!name)
			return fill(
				statusLine,
				trouble({ message: "The manifest has no name.", hint: "Write `name: first`." }),
			);
		guide.setAttribute("data-begun", ""); // it stays when there is a pipeline now
		button.disabled = true;
		fill(
			statusLine,
			h(
				"p",
				{ class: "busy" },
				"It is checked, then a driver of Spark starts: the first time this takes some seconds.",
			),
		);
		try {
			await carryOut(`${pipelinePath(name)}?wait=10`, {
				method: "PUT",
				body: text.value,
				type: "application/yaml",
			});
			if (!guide.isConnected) return notice(`${name} is applied.`);
			fill(
				statusLine,
				h(
					"p",
					{},
					"It is applied. Now send a record: its token becomes green when the record can be read after the pipeline.",
				),
			);
			fill(next, sendForm(name));
			void live.look();
		} catch (error) {
			button.disabled = false;
			if (guide.isConnected) fill(statusLine, trouble(error));
			else notice(`${name} was not applied: `, trouble(error));
		}
	}

	return guide;
}
