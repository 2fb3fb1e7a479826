/**
 * What is known of all pipelines now, shared by all of the page: one look every two seconds, and one
 * stream of events for the tab; none of both while nobody looks at it.
 */

import { ahead, all, ask, Problem } from "./api.js";
import { Figures, LOOK_MS, STALE_MS } from "./figures.js";
import { Stream } from "./stream.js";
import { places } from "./words.js";

const KEPT_MS = 10 * 60_000;
const BATCHES_MAX = 300; // of a stage
const TIMEOUT_MS = 8_000; // of a look: a connection may hang
const DELAY_MS = 50; // of a look that an event asks for: several come together

class Live extends EventTarget {
	constructor() {
		super();
		/** @type {Summary[]} */
		this.pipelines = [];
		this.figures = new Figures();
		/** @type {Map<string, Batch[]>} by uid, oldest first */
		this.batches = new Map();
		/** @type {Set<string>} */
		this.scopes = new Set();
		/** @type {Error | null} why the last look failed */
		this.away = null;
		/** @type {Error | null} why there are no figures */
		this.blind = null;
		/** @type {Error | null} why no events come */
		this.deaf = null;
		this.known = false;
		this.readAt = -Infinity; // by performance.now()
		/** @type {Stream | null} */
		this.stream = null;
		/** @type {{path: string, follower: Follower} | null} */
		this.wanted = null;
		this.timer = 0;
		this.position = "";
		/** @type {Promise<unknown> | null} */
		this.looking = null;
		/** @type {Promise<unknown> | null} */
		this.measuring = null;
	}

	start() {
		document.addEventListener("visibilitychange", () => this.#shown());
		this.#shown();
	}

	/** Begin again, as with another key. */
	again() {
		this.away = this.blind = this.deaf = null;
		this.scopes = new Set();
		this.position = "";
		this.pipelines = [];
		this.figures.clear();
		this.batches.clear();
		this.known = false;
		this.looking = this.measuring = null;
		this.#shown();
	}

	/** By Waybill's clock: the one of this machine may be wrong. */
	now() {
		return Date.now() + ahead();
	}

	get stale() {
		return performance.now() - this.readAt > STALE_MS;
	}

	/** @param {string} scope */
	may(scope) {
		return this.scopes.has(scope);
	}

	/**
	 * Call the listener now, and at each change, until the returned function is called.
	 * @param {() => void} listener
	 */
	watch(listener) {
		this.addEventListener("change", listener);
		listener();
		return () => this.removeEventListener("change", listener);
	}

	/**
	 * The stream of this tab is that one, instead of all events, until the returned function is called.
	 * @param {string} path
	 * @param {Follower} follower
	 */
	follow(path, follower) {
		this.wanted = { path, follower };
		this.#open();
		const mine = this.wanted;
		return () => {
			if (this.wanted !== mine) return;
			this.wanted = null;
			this.#open();
		};
	}

	/** One look at all pipelines and at what the key may do, however many ask for it. */
	look() {
		if (!this.looking) {
			const mine = Promise.all([this.#lookAt(), this.scopes.size ? null : this.#lookUp()]);
			const looking = mine.finally(() => {
				if (this.looking === looking) this.looking = null;
			});
			this.looking = looking;
		}
		return this.looking;
	}

	/** @param {string} name */
	pipeline(name) {
		return this.pipelines.find((each) => each.name === name) ?? null;
	}

	#changed() {
		this.dispatchEvent(new Event("change"));
	}

	#shown() {
		clearTimeout(this.timer);
		if (document.hidden) {
			this.stream?.close();
			this.stream = null;
			return;
		}
		this.#open();
		void this.#turn();
	}

	async #turn() {
		clearTimeout(this.timer);
		this.measuring ??= this.#measure().finally(() => (this.measuring = null));
		await this.look();
		clearTimeout(this.timer);
		if (!document.hidden) this.timer = window.setTimeout(() => void this.#turn(), LOOK_MS);
	}

	async #lookAt() {
		try {
			this.pipelines = await all("/v1/pipelines", AbortSignal.timeout(TIMEOUT_MS));
			this.away = null;
			this.known = true;
			this.readAt = performance.now();
			this.#forget();
		} catch (error) {
			this.away = /** @type {Error} */ (error);
		}
		this.#changed();
	}

	async #lookUp() {
		try {
			const { scopes } = await ask("/v1/key", { signal: AbortSignal.timeout(TIMEOUT_MS) });
			this.scopes = new Set(scopes);
			this.#changed();
		} catch {
			// the list of pipelines says why
		}
	}

	/** What Kafka must be asked for may take longer, and hold up nothing else. */
	async #measure() {
		try {
			this.figures.accept(await ask("/v1/flow", { signal: AbortSignal.timeout(2 * TIMEOUT_MS) }));
			this.blind = null;
		} catch (error) {
			this.blind = /** @type {Error} */ (error);
		}
		this.#changed();
	}

	#forget() {
		const living = new Set(this.pipelines.map((each) => each.uid));
		this.figures.keep(living);
		for (const uid of this.batches.keys()) if (!living.has(uid)) this.batches.delete(uid);
	}

	#open() {
		this.stream?.close();
		this.stream = null;
		if (document.hidden) return;
		if (!this.wanted) return void this.#openAll();
		this.stream = new Stream(this.wanted.path, this.wanted.follower);
		this.deaf = null; // nobody listens to all events now
		this.#changed();
	}

	/** The events before it was opened are read first, for the last ten minutes. */
	async #openAll() {
		while (!this.position) {
			try {
				const { items, position } = await ask("/v1/events?type=waybill.stage.committed");
				items.forEach((/** @type {any} */ event) => this.#takeBatch(event));
				this.position = position;
			} catch (error) {
				if (this.wanted) return;
				this.deaf = /** @type {Error} */ (error);
				this.#changed();
				if (error instanceof Problem && error.status < 500 && error.status !== 429) return;
				await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
				if (document.hidden || this.wanted) return;
			}
		}
		if (this.wanted || this.stream || document.hidden) return;
		const follower = {
			receive: (/** @type {Received} */ received) => {
				this.position = received.id || this.position;
				this.#take(received.data);
			},
			lost: (/** @type {Error | null} */ lost) => {
				this.deaf = lost;
				this.#changed();
			},
		};
		this.stream = new Stream("/v1/events", follower, this.position);
	}

	/** @param {any} event */
	#take(event) {
		if (event.type === "waybill.stage.committed") this.#takeBatch(event);
		if (event.type === "waybill.pipeline.phase") {
			this.#takePhase(event);
			this.#changed();
			setTimeout(() => void this.look(), DELAY_MS);
		}
		if (event.type) this.dispatchEvent(new CustomEvent("event", { detail: event }));
	}

	/** @param {any} event */
	#takeBatch(event) {
		const { pipeline_uid: uid, sink, batch, rows, started_at: startedAt, version } = event.data;
		const records = places(event.data.ranges ?? []);
		const committedAt = Date.parse(event.time);
		const batches = this.batches.get(uid) ?? [];
		const began = startedAt ? Date.parse(startedAt) : committedAt;
		const { stage } = event;
		const added = { stage, sink, batch, records, rows, startedAt: began, committedAt, version };
		if (batches.some((each) => same(each, added))) return;
		batches.push(added);
		if (batches.length > 1 && batches[batches.length - 2].committedAt > committedAt)
			batches.sort((a, b) => a.committedAt - b.committedAt);
		while (batches.length && this.now() - batches[0].committedAt > KEPT_MS) batches.shift();
		const mine = batches.filter((each) => each.stage === event.stage);
		if (mine.length > BATCHES_MAX) batches.splice(batches.indexOf(mine[0]), 1);
		this.batches.set(uid, batches);
	}

	/**
	 * Read the batches of one pipeline from before this page was opened.
	 * @param {string} name
	 */
	async recall(name) {
		const query = new URLSearchParams({ type: "waybill.stage.committed", pipeline: name });
		const { items } = await ask(`/v1/events?${query}`);
		items.forEach((/** @type {any} */ event) => this.#takeBatch(event));
	}

	/** A phase is shown at once; its reason comes with the next look. @param {any} event */
	#takePhase(event) {
		this.pipelines = this.pipelines.map((each) => {
			if (each.uid !== event.data.pipeline_uid) return each;
			return { ...each, phase: event.data.phase, since: event.time, reason: event.data.reason };
		});
	}
}

/**
 * @param {Batch} one
 * @param {Batch} other
 */
function same(one, other) {
	return (
		one.batch === other.batch &&
		one.committedAt === other.committedAt &&
		one.stage === other.stage &&
		one.sink === other.sink
	);
}

export const live = new Live();
