/** A manifest to write: errors at their lines as it is typed, and what it would change before it does. */

import { Problem, ask, carryOut, check, pipelinePath } from "./api.js";
import { confirmed, fill, h, notice, set, trouble } from "./dom.js";
import { live } from "./live.js";
import { go, toPipeline } from "./router.js";
import { FIRST_MANIFEST, nameOf } from "./samples.js";
import { count, spelled } from "./words.js";

const PAUSE_MS = 500;

/**
 * @param {URLSearchParams} query
 * @returns {View}
 */
export function applyView(query) {
	const of = query.get("pipeline");
	const lines = h("div", { class: "lines", "aria-hidden": "true" });
	const text = h("textarea", {
		spellcheck: false,
		wrap: "off",
		"aria-label": "Manifest",
		"aria-describedby": "found",
		oninput: () => edited(),
	});
	const found = h("div", { id: "found", role: "status", "aria-live": "polite" });
	const button = h("button", { type: "button", onclick: () => void apply() }, "Apply");
	const element = h(
		"div",
		{},
		h("div", { class: "tools" }, h("h1", {}, of ? `Change ${of}` : "New pipeline"), button),
		h(
			"p",
			{ class: "quiet" },
			"Nothing is changed before you say Apply. Escape, then Tab leaves the editor.",
		),
		h("div", { class: "editor" }, lines, text),
		found,
	);
	/** @type {Awaited<ReturnType<typeof check>> | null} what was found in the text as it is now */
	let findings = null;
	let checked = ""; // the text that they are of
	let applied = "";
	let admin = live.may("admin");
	let checking = new AbortController();
	let timer = 0;
	let leave = false;
	let busy = false;

	text.addEventListener("scroll", () => (lines.scrollTop = text.scrollTop));
	text.addEventListener("keydown", (event) => {
		if (event.key === "Escape") leave = true;
		else if (event.key === "Tab" && !leave && !event.shiftKey) {
			event.preventDefault();
			document.execCommand("insertText", false, "  "); // so that it can be undone
		} else leave = false;
	});

	function edited() {
		findings = null;
		number([]);
		button.disabled = true;
		checking.abort();
		clearTimeout(timer);
		timer = window.setTimeout(() => void validate(), PAUSE_MS);
	}

	async function validate() {
		clearTimeout(timer);
		checking.abort();
		checking = new AbortController();
		const { signal } = checking;
		const asked = text.value;
		set(found, "data-busy", asked.trim() !== "");
		if (!asked.trim()) return fill(found, h("p", { class: "quiet" }, "The manifest is empty."));
		try {
			const found = await check(asked, signal);
			if (signal.aborted) return;
			[findings, checked] = [found, asked];
			showFindings(found);
		} catch (error) {
			if (!signal.aborted)
				fill(
					found,
					trouble(error),
					h(
						"button",
						{ type: "button", class: "small", onclick: () => void validate() },
						"Check it again",
					),
				);
		} finally {
			if (!signal.aborted) set(found, "data-busy", false);
		}
	}

	/** @param {NonNullable<typeof findings>} answer */
	function showFindings({ errors, warnings, changes }) {
		number(errors.map((each) => each.line ?? 0));
		button.disabled = busy || errors.length > 0 || !live.may("admin");
		const none = !errors.length && !changes?.length;
		const fine = changes ? "It is as what is applied now." : "It can be applied.";
		fill(
			found,
			errors.length ? h("h2", {}, count(errors.length, "error")) : null,
			h("ul", { class: "errors" }, ...errors.map(errorLine)),
			...warnings.map((each) => h("p", { class: "warning" }, each)),
			changes?.length ? h("h2", {}, "What it changes") : null,
			h("ul", { class: "changes" }, ...(changes ?? []).map(changeLine)),
			none ? h("p", { class: "fine" }, fine) : null,
			live.may("admin")
				? null
				: h("p", { class: "quiet" }, "To apply it, use a key with the scope admin."),
		);
	}

	/** @param {PlacedError} error */
	function errorLine(error) {
		const jump = () => {
			const before = text.value
				.split("\n")
				.slice(0, (error.line ?? 1) - 1)
				.join("\n").length;
			const at = before + (before ? 1 : 0) + Math.max(0, (error.column ?? 1) - 1);
			text.focus();
			text.setSelectionRange(at, at);
			text.scrollTop = Math.max(0, ((error.line ?? 1) - 5) * 20);
		};
		const place = error.line
			? h("button", { type: "button", class: "small", onclick: jump }, `line ${error.line}`)
			: h("span", { class: "quiet" }, error.path);
		return h(
			"li",
			{},
			place,
			" ",
			error.message,
			error.hint ? h("div", { class: "quiet" }, error.hint) : null,
		);
	}

	/** @param {{message: string, effect: string}} change */
	function changeLine({ message, effect }) {
		return h(
			"li",
			{ "data-tone": effect ? "bad" : null },
			message,
			effect ? h("strong", {}, ` ${spelled(effect)}`) : null,
		);
	}

	/** @param {number[]} wrong */
	function number(wrong) {
		const size = text.value.split("\n").length;
		fill(
			lines,
			...Array.from({ length: size }, (_, i) =>
				h("div", { "data-tone": wrong.includes(i + 1) ? "bad" : null }, i + 1),
			),
		);
		lines.scrollTop = text.scrollTop;
	}

	async function apply() {
		const manifest = text.value;
		if (!findings || manifest !== checked) return void validate();
		const name = of ?? nameOf(manifest);
		if (!name)
			return fill(
				found,
				trouble({
					message: "The name of the pipeline was not found in the manifest.",
					hint: "Write it in a line of its own: name: orders",
				}),
			);
		const lossy = (findings.changes ?? [])
			.filter((each) => each.effect)
			.map((each) => `${each.message}: ${spelled(each.effect)}`);
		if (findings.changes === null && live.pipeline(name))
			lossy.push("There is such a pipeline, and what this changes of it is not known.");
		if (
			lossy.length &&
			!(await confirmed(
				`Apply this change of ${name}?`,
				[...lossy, "This cannot be undone."],
				"Apply it",
			))
		)
			return;
		busy = button.disabled = text.readOnly = true;
		fill(found, h("p", { class: "busy" }, "It is checked once more, then it is applied…"));
		try {
			await send(name, manifest);
			applied = manifest;
			await live.look();
			if (element.isConnected) go(toPipeline(name));
			else notice(h("a", { href: toPipeline(name) }, name), " is applied.");
		} catch (error) {
			if (!element.isConnected) return notice(`${name} was not applied: `, trouble(error));
			const errors = /** @type {any} */ (error).errors ?? [];
			fill(found, trouble(error), h("ul", { class: "errors" }, ...errors.map(errorLine)));
			number(errors.map((/** @type {any} */ each) => each.line ?? 0));
		} finally {
			busy = text.readOnly = false;
			button.disabled = !findings || findings.errors.length > 0;
		}
	}

	/**
	 * Asks where a sink would write to a topic or table of another pipeline.
	 * @param {string} name
	 * @param {string} manifest
	 */
	async function send(name, manifest) {
		const path = `${pipelinePath(name)}?wait=10`;
		const asked = { method: "PUT", body: manifest, type: "application/yaml" };
		try {
			await carryOut(path, asked);
		} catch (error) {
			if (!(error instanceof Problem) || error.slug !== "target_shared") throw error;
			const said = error.errors.map((each) => `${each.message}.`);
			const title = `Let ${name} write where another pipeline writes?`;
			if (!(await confirmed(title, said, "Apply it"))) throw error;
			await carryOut(`${path}&allow_shared=true`, asked);
		}
	}

	async function begin() {
		button.disabled = true;
		try {
			text.value = of ? (await ask(pipelinePath(of))).manifest : FIRST_MANIFEST;
			applied = text.value;
		} catch (error) {
			return fill(found, trouble(error, begin));
		}
		number([]);
		await validate();
	}

	const end = live.watch(() => {
		if (admin === live.may("admin")) return;
		admin = live.may("admin");
		if (findings && !busy) showFindings(findings);
	});
	const leaving = (/** @type {BeforeUnloadEvent} */ event) => {
		if (edits()) event.preventDefault();
	};
	const edits = () => text.value !== applied;
	window.addEventListener("beforeunload", leaving);
	void begin();
	return {
		element,
		title: of ? `Change ${of}` : "New pipeline",
		keeps: edits,
		close: () => {
			clearTimeout(timer);
			checking.abort();
			end();
			window.removeEventListener("beforeunload", leaving);
		},
	};
}
