/** Starts the console: the bar, its keys, the banner, and a view for each address. */

import { hasKey, Problem, request, useKey } from "./api.js";
import { fill, h, say, set, trouble } from "./dom.js";
import { live } from "./live.js";
import { go, renew, route, start, toPipeline, toToken } from "./router.js";
import { applyView } from "./view-apply.js";
import { deadView } from "./view-dead.js";
import { pipelineView } from "./view-pipeline.js";
import { pipelinesView } from "./view-pipelines.js";
import { askView, tokenView } from "./view-token.js";
import { duration } from "./words.js";

const TOKEN = /^wb\d+\./; // also one that is cut short
const TICK_MS = 1_000;
const CHORD_MS = 1_500;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const banner = /** @type {HTMLElement} */ (document.getElementById("banner"));
const wrong = h("span", { role: "status" });
const age = h("span", { "aria-hidden": "true" }); // it counts: no reader should read it out
fill(banner, wrong, age);
const bar = /** @type {HTMLElement} */ (document.getElementById("bar"));

const docs = h("a", { href: "/docs", target: "_blank", rel: "noopener", hidden: true }, "API");
const jump = h("input", {
	type: "search",
	list: "names",
	placeholder: "Go to a pipeline or token  /",
	"aria-label": "Go to a pipeline or token",
});
const names = h("datalist", { id: "names" });
const keyField = h("input", {
	type: "password",
	"aria-label": "API key",
	placeholder: "wb_…",
	autocomplete: "off",
});
const keyForm = h(
	"form",
	{ class: "key", hidden: true, onsubmit: takeKey },
	h("label", {}, "API key ", keyField),
	h("button", { type: "submit" }, "Use it"),
	h("span", { class: "quiet" }, "It stays in the memory of this tab."),
);
const keyButton = h(
	"button",
	{ type: "button", class: "small", onclick: () => askForKey(keyForm.hidden) },
	"API key",
);

fill(
	bar,
	h("a", { class: "brand", href: "/" }, "Waybill"),
	h(
		"nav",
		{ "aria-label": "views" },
		h("a", { href: "/" }, "Pipelines"),
		h("a", { href: "/t" }, "Token"),
		h("a", { href: "/apply" }, "New"),
		docs,
	),
	h("form", { class: "jump", role: "search", onsubmit: jumpTo }, jump, names),
	keyButton,
	keyForm,
);

/** @param {Event} event */
function jumpTo(event) {
	event.preventDefault();
	const wanted = jump.value.trim();
	if (!wanted) return;
	jump.value = "";
	jump.blur();
	if (TOKEN.test(wanted)) return go(toToken(wanted));
	const found =
		live.pipelines.find((each) => each.name === wanted) ??
		live.pipelines.find((each) => each.name.includes(wanted));
	go(toPipeline(found?.name ?? wanted));
}

/** @param {Event} event */
function takeKey(event) {
	event.preventDefault();
	useKey(keyField.value);
	keyField.value = "";
	askForKey(false);
	live.again();
	renew(); // what is shown was refused
}

/** @param {boolean} wanted */
function askForKey(wanted) {
	set(keyForm, "hidden", !wanted);
	if (wanted) keyField.focus();
}

let asked = false;

function showState() {
	const { away, blind, deaf } = live;
	const keyless = away instanceof Problem && away.needsKey;
	set(document.body, "data-stale", live.stale && live.known);
	set(document.body, "data-blind", live.figures.stale && live.known);
	say(keyButton, hasKey() ? "API key in use" : "API key");
	set(document.body, "data-deaf", deaf !== null);
	if (keyless) {
		say(wrong, `${away.message}. Give one with the scope read.`);
		if (!asked) askForKey((asked = true));
	} else if (away) say(wrong, `${away.message} It is tried again by itself.`);
	else if (live.known && live.stale) say(wrong, "Waybill has not answered for some seconds.");
	else if (live.known && live.figures.stale)
		say(wrong, `No figures: ${blind?.message ?? "they take long."}`);
	else say(wrong, deaf ? `No events: ${deaf.message} Batches are not new.` : "");
	const old = live.known && live.stale && !keyless;
	say(age, old ? ` What is shown is ${duration(performance.now() - live.readAt)} old.` : "");
	set(banner, "hidden", wrong.textContent === "");
	if (!away) asked = false;
}

let listed = "";
live.addEventListener("change", () => {
	showState();
	const now = live.pipelines.map((each) => each.name);
	if (listed === now.join()) return;
	listed = now.join();
	fill(names, ...now.map((name) => h("option", { value: name })));
});
setInterval(showState, TICK_MS);

let chordAt = -Infinity;
document.addEventListener("keydown", (event) => {
	const target = /** @type {HTMLElement} */ (event.target);
	const typing =
		target.matches?.("input, textarea, select") || document.querySelector("dialog[open]");
	if (event.key === "Escape" && target === jump) jump.blur();
	if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
	const chord = performance.now() - chordAt < CHORD_MS;
	chordAt = event.key === "g" ? performance.now() : -Infinity;
	if (event.key === "/") {
		event.preventDefault();
		(document.getElementById("filter") ?? jump).focus();
	} else if (chord && event.key === "p") go("/");
	else if (chord && event.key === "t") go("/t");
	else if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event, target);
});

/**
 * From row to row of a table, by the link that names the row.
 * @param {KeyboardEvent} event
 * @param {HTMLElement} target
 */
function step(event, target) {
	const links = /** @type {HTMLElement[]} */ ([...main.querySelectorAll("table.list tbody th a")]);
	if (links.length === 0) return;
	const at = links.findIndex((each) => each === target || each.closest("tr")?.contains(target));
	if (at < 0 && target !== document.body && target !== main) return;
	event.preventDefault();
	const next = event.key === "ArrowDown" ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0);
	links[next].focus();
}

route("/", (_, query) => pipelinesView(query));
route("/p/{name}", ({ name }, query) => pipelineView(name, query));
route("/p/{name}/dead-letters", ({ name }, query) => deadView(name, query));
route("/t", () => askView());
route("/t/{token}", ({ token }) => tokenView(token));
route("/apply", (_, query) => applyView(query));

live.start();
start(({ element, title }, moved) => {
	document.title = title === "Pipelines" ? "Waybill" : `${title} – Waybill`;
	fill(main, element);
	for (const link of bar.querySelectorAll("nav a")) {
		set(link, "aria-current", link.getAttribute("href") === location.pathname ? "page" : null);
	}
	if (moved) {
		main.focus({ preventScroll: true });
		window.scrollTo(0, 0);
	}
});
window.addEventListener("error", (event) =>
	main.prepend(
		trouble({ message: `A fault of the console: ${event.message}`, hint: "Load the page again." }),
	),
);
// Not every gateway has a page for the interface.
void request("/docs", { method: "HEAD", accept: "text/html" }).then(
	() => set(docs, "hidden", null),
	() => {},
);
