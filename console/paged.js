/** The foot of a list that is read page by page: reads it, says how much is shown, and shows older items. */

import { ask, query } from "./api.js";
import { announce, fill, h, say, set, trouble } from "./dom.js";
import { Pages } from "./pages.js";
import { count } from "./words.js";

const PAGES_EMPTY = 20; // one after another without an item, before somebody asks again

/**
 * @template {{id: string}} T
 * @param {object} list
 * @param {string} list.path
 * @param {string} list.one name of an item
 * @param {string} [list.many]
 * @param {number} list.first how many the newest page has
 * @param {number} list.further how many each older one has
 * @param {AbortSignal} list.signal
 * @param {(items: T[]) => void} list.draw newest first
 */
export function paged({ path, one, many = `${one}s`, first, further, signal, draw }) {
	/** @type {Pages<T>} */
	const pages = new Pages();
	const said = h("span", { class: "quiet", tabindex: -1 });
	const more = h("button", { type: "button", class: "small", hidden: true, onclick: older });
	say(more, `Show older ${many}`);
	const fault = h("div", {});
	const element = h("div", { class: "foot" }, h("div", { class: "actions" }, more, said), fault);
	/** @type {Promise<void> | null} */
	let reading = null;
	let again = false;
	let deeper = false; // asked for meanwhile

	/** Read the newest page, once more if something happens meanwhile. */
	function look() {
		again = reading !== null;
		if (!reading) void turn(newest, look);
	}

	function older() {
		deeper = reading !== null;
		if (!reading) void turn(search, older).then(() => announce(said.textContent ?? ""));
	}

	async function newest() {
		pages.renew(await page({ limit: first }));
		if (!pages.items.length && pages.cursor) await search();
	}

	async function search() {
		const before = pages.items.length;
		for (let i = 0; i < PAGES_EMPTY && pages.cursor && pages.items.length === before; i++) {
			say(said, "Looking further back…");
			pages.extend(await page({ limit: further, cursor: pages.cursor }));
		}
	}

	/** @param {Record<string, string | number>} values */
	function page(values) {
		return ask(`${path}?${query(values)}`, { signal });
	}

	/**
	 * @param {() => Promise<void>} work
	 * @param {() => void} retry
	 */
	async function turn(work, retry) {
		if (!pages.items.length) say(said, "Loading…");
		set(more, "aria-busy", true);
		reading = work();
		try {
			await reading;
			fill(fault);
			show();
		} catch (error) {
			if (signal.aborted) return;
			show();
			fill(fault, trouble(error, retry));
			say(said, "");
		} finally {
			reading = null;
			set(more, "aria-busy", null);
		}
		if (deeper) older();
		else if (again) look();
	}

	function show() {
		draw(pages.items);
		const number = pages.items.length;
		const end = pages.cut ? "What is older was deleted." : "These are all of the last 30 days.";
		const none = pages.cut ? end : `No ${one} in the last 30 days.`;
		const shown = `${count(number, one, many)} shown.`;
		if (pages.cursor) say(said, number ? shown : `No ${one} was found yet.`);
		else say(said, number ? `${shown} ${end}` : none);
		if (!pages.cursor && document.activeElement === more) said.focus(); // the button goes
		set(more, "hidden", !pages.cursor);
	}
	return { element, look };
}
