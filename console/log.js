/** The end of the log of a pipeline's driver, when somebody wants to see it. */

import { ask, pipelinePath } from "./api.js";
import { fill, h, trouble } from "./dom.js";

const LINES = 200;

/** @param {string} name of the pipeline */
export function logPart(name) {
	const place = h("div", { "aria-live": "polite" });
	const button = h("button", { type: "button", class: "small", onclick: read }, "Show its log");

	async function read() {
		button.disabled = true;
		try {
			const { lines } = await ask(`${pipelinePath(name)}/logs?lines=${LINES}`);
			const log = h("pre", { tabindex: 0, class: "log" }, lines.map(readable).join("\n"));
			fill(place, lines.length ? log : h("p", { class: "quiet" }, "Nothing was logged yet."));
			log.scrollTop = log.scrollHeight;
			button.textContent = "Look again";
		} catch (error) {
			fill(place, trouble(error));
		} finally {
			button.disabled = false;
		}
	}
	return h("div", {}, h("div", { class: "actions" }, button), place);
}

/**
 * A line of JSON as people read it; others are as they are.
 * @param {string} line
 */
function readable(line) {
	if (!line.startsWith("{")) return line;
	try {
		const { at, level, service, logger, message, error, expected, ...more } = JSON.parse(line);
		const rest = Object.entries(more).map(([name, value]) => ` ${name}=${value}`);
		return `${at} ${level} ${logger}: ${message}${rest.join("")}${error ? `\n${error}` : ""}`;
	} catch {
		return line;
	}
}
