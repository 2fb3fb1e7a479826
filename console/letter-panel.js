/** One dead letter with what can be done about it: replay it as it was, or edit and send it. */

import { h, set } from "./dom.js";
import { letterView } from "./letter.js";
import { live } from "./live.js";

/**
 * @param {any} letter
 * @param {(edited: { value: string } | null) => void} replay
 * @param {() => void} close
 */
export function letterPanel(letter, replay, close) {
	const one = h("button", { type: "button", onclick: () => replay(null) }, "Replay this one");
	const may = live.may("write") && !letter.not_replayable;
	const [edit, form] = may && letter.value !== null ? editing(letter.value, replay) : [null, null];
	return h(
		"div",
		{ class: "panel" },
		h(
			"div",
			{ class: "actions" },
			may ? one : null,
			edit,
			h("button", { type: "button", class: "small", onclick: close }, "Close"),
		),
		letter.not_replayable
			? h("p", { class: "quiet" }, `It cannot be replayed: ${letter.not_replayable}.`)
			: null,
		form,
		letterView(letter),
	);
}

/**
 * The button that opens the editor, and the editor.
 * @param {string} value
 * @param {(edited: { value: string }) => void} replay
 */
function editing(value, replay) {
	const text = h("textarea", { rows: 12, spellcheck: false, "aria-label": "The edited value" });
	const send = h(
		"button",
		{ type: "button", disabled: true, onclick: () => replay({ value: text.value }) },
		"Send",
	);
	text.value = value;
	text.addEventListener("input", () => set(send, "disabled", text.value === value));
	const form = h("div", { hidden: true }, text, h("div", { class: "actions" }, send));
	const open = () => {
		set(form, "hidden", false);
		text.focus();
	};
	return [h("button", { type: "button", onclick: open }, "Edit and send"), form];
}
