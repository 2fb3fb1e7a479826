/** A list that is read page by page, newest first, as far back as somebody asked for. Pure. */

/** @template {{id: string}} T */
export class Pages {
	constructor() {
		/** @type {T[]} newest first */
		this.items = [];
		/** @type {string | null} of the page before the oldest item; null: there is none */
		this.cursor = null;
		this.cut = false; // what is older was deleted
		this.extended = false; // somebody has asked for older ones
	}

	/**
	 * Take the newest page. Older items that somebody asked for stay if it reaches them: else there
	 * would be a hole.
	 * @param {Page<T>} page
	 */
	renew({ items, next_cursor: cursor, gap }) {
		if (!items.length && cursor && this.items.length) return; // it has not searched far enough
		const newest = [...items].reverse();
		const ids = new Set(newest.map((each) => each.id));
		const at = this.items.findIndex((each) => ids.has(each.id));
		// Another process may have answered, which knows less: what is newer stays, too.
		const newer = this.items.slice(0, Math.max(at, 0));
		this.extended &&= at >= 0;
		const older = this.extended ? this.items.slice(at).filter((each) => !ids.has(each.id)) : [];
		this.items = [...newer, ...newest, ...older];
		if (this.extended) return;
		this.cursor = cursor;
		this.cut = gap !== null;
	}

	/**
	 * Take the page before the oldest item.
	 * @param {Page<T>} page
	 */
	extend({ items, next_cursor: cursor, gap }) {
		const ids = new Set(this.items.map((each) => each.id));
		this.items.push(...[...items].reverse().filter((each) => !ids.has(each.id)));
		this.cursor = cursor;
		this.cut ||= gap !== null;
		this.extended = true;
	}
}
