/** Makes elements. Text is always text: nothing in the console parses HTML. */

import { ahead } from "./api.js";
import { inUtc, inZone } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes] those that begin with `on` are listeners
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
	return dressed(document.createElement(tag), attributes, children);
}

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function s(tag, attributes = {}, ...children) {
	return dressed(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function dressed(element, attributes, children) {
	for (const [name, value] of Object.entries(attributes)) {
		if (typeof value === "function") element.addEventListener(name.slice(2), value);
		else set(element, name, value);
	}
	fill(element, ...children);
	return element;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string | number | boolean | null | undefined} value
 */
export function set(element, name, value) {
	const text = value === true ? "" : String(value);
	if (value === null || value === undefined || value === false) element.removeAttribute(name);
	else if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/**
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
	element.replaceChildren(
		.../** @type {(Node | string)[]} */ (children.filter(isThere).map(asNode)),
	);
}

/** @param {Child} child */
function isThere(child) {
	return child !== null && child !== undefined && child !== false;
}

/** @param {Child} child */
function asNode(child) {
	return child instanceof Node ? child : String(child);
}

/**
 * The text of an element, touched only where it changes: so a selection in it stays.
 * @param {Element} element
 * @param {string | number} text
 */
export function say(element, text) {
	if (element.textContent !== String(text)) element.textContent = String(text);
}

/**
 * Children by key: one that stays is the same element, so focus and scrolling stay too.
 * @template T
 * @template {Element} E
 * @param {Element} parent
 * @param {readonly T[]} items
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => E} make
 * @param {(element: E, item: T) => void} update
 */
export function keep(parent, items, keyOf, make, update) {
	const kept = /** @type {Map<string, E>} */ (elements.get(parent) ?? new Map());
	const wanted = new Map();
	/** @type {E | null} */
	let before = null;
	for (const item of items) {
		const key = keyOf(item);
		const element = kept.get(key) ?? make(item);
		update(element, item);
		wanted.set(key, element);
		/** @type {ChildNode | null} */
		const place = before ? before.nextSibling : parent.firstChild;
		if (element !== place) parent.insertBefore(element, place);
		before = element;
	}
	const stays = new Set(wanted.values());
	for (const child of [...parent.childNodes]) if (!stays.has(child)) child.remove();
	elements.set(parent, wanted);
}

/** @type {WeakMap<Element, Map<string, any>>} */
const elements = new WeakMap();

/**
 * A moment in the reader's zone, and in UTC when it is pointed at.
 * @param {string | number | null | undefined} moment
 * @param {boolean} [precise]
 * @returns {HTMLElement}
 */
export function time(moment, precise = false) {
	if (moment === null || moment === undefined) return h("span", { class: "quiet" }, "–");
	const at = new Date(moment);
	const now = new Date(Date.now() + ahead());
	return h("time", { datetime: at.toISOString(), title: inUtc(at) }, inZone(at, precise, now));
}

/**
 * A button that copies a text, and says so.
 * @param {string} text
 * @param {string} what
 */
export function copier(text, what) {
	const button = h(
		"button",
		{ type: "button", class: "small", "aria-label": `Copy ${what}` },
		"Copy",
	);
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(text);
			say(button, "Copied");
		} catch {
			say(button, "Select and copy it"); // a page that is not on https or loopback may not write
		}
		setTimeout(() => say(button, "Copy"), 2000);
	});
	return button;
}

/**
 * What may be wider than the screen, and can be scrolled with the keyboard too.
 * @param {string} label
 * @param {Child} child
 */
export function wide(label, child) {
	return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label }, child);
}

/**
 * A line to copy.
 * @param {string} label
 * @param {string} text
 */
export function line(label, text) {
	return h(
		"div",
		{ class: "line" },
		h("span", { class: "quiet" }, label),
		h("code", {}, text),
		copier(text, label),
	);
}

/**
 * Asks first what cannot be undone.
 * @param {string} title
 * @param {Child[]} said
 * @param {string} yes
 * @returns {Promise<boolean>}
 */
export function confirmed(title, said, yes) {
	return new Promise((resolve) => {
		const box = h("dialog", { "aria-labelledby": "asked" });
		const end = (/** @type {boolean} */ answer) => {
			box.close();
			box.remove();
			resolve(answer);
		};
		fill(
			box,
			h("h2", { id: "asked" }, title),
			...said.map((each) => h("p", {}, each)),
			h(
				"div",
				{ class: "actions" },
				h("button", { type: "button", onclick: () => end(false), autofocus: true }, "Cancel"),
				h("button", { type: "button", class: "danger", onclick: () => end(true) }, yes),
			),
		);
		box.addEventListener("cancel", () => end(false));
		document.body.append(box);
		box.showModal();
	});
}

/**
 * Informs screen readers, who see no colour change.
 * @param {string} text
 */
export function announce(text) {
	const news = document.getElementById("news");
	if (!news) return;
	news.append(h("p", {}, text));
	while (news.childElementCount > 5) news.firstChild?.remove();
}

/**
 * What became of something that was started in a view which is not there any more.
 * @param {...Child} said
 */
export function notice(...said) {
	const box = h("div", { class: "notice", role: "status" }, ...said, " ");
	box.append(
		h("button", { type: "button", class: "small", onclick: () => box.remove() }, "Close"),
	);
	document.getElementById("notices")?.append(box);
}

/**
 * An error as a person can use it.
 * @param {unknown} error
 * @param {() => unknown} [again] tries once more
 */
export function trouble(error, again) {
	const problem = /** @type {{message?: string, hint?: string | null}} */ (error);
	return h(
		"div",
		{ class: "trouble", role: "alert" },
		h("p", {}, problem?.message ?? String(error)),
		problem?.hint ? h("p", { class: "quiet" }, problem.hint) : null,
		again
			? h("button", { type: "button", class: "small", onclick: () => void again() }, "Try again")
			: null,
	);
}
