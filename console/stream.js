/**
 * One stream of server-sent events. A lost one comes back where it ended.
 * EventSource cannot send a key, so the answer of a request is read as it comes.
 */

import { Away, Problem, request } from "./api.js";

const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 10_000;
const SILENCE_MS = 40_000; // Waybill says at least every 15 s that it lives

/** Reads events from pieces of text, wherever these are cut. */
export class EventReader {
	constructor() {
		this.rest = "";
		this.id = "";
	}

	/**
	 * @param {string} piece
	 * @returns {Received[]}
	 */
	read(piece) {
		const blocks = (this.rest + piece).replaceAll("\r\n", "\n").split("\n\n");
		this.rest = blocks.pop() ?? "";
		return blocks.map((block) => this.#event(block)).filter((event) => event !== null);
	}

	/**
	 * @param {string} block
	 * @returns {Received | null}
	 */
	#event(block) {
		let name = "message";
		const data = [];
		for (const line of block.split("\n")) {
			const [field, ...rest] = line.split(":");
			const value = rest.join(":").replace(/^ /, "");
			if (field === "id") this.id = value;
			else if (field === "event") name = value;
			else if (field === "data") data.push(value);
		}
		return data.length ? { name, data: JSON.parse(data.join("\n")), id: this.id } : null;
	}
}

export class Stream {
	/**
	 * @param {string} path
	 * @param {Follower} follower
	 * @param {string} [after] the id to go on after
	 */
	constructor(path, follower, after = "") {
		this.path = path;
		this.follower = follower;
		this.after = after;
		this.abort = new AbortController();
		void this.#run();
	}

	close() {
		this.abort.abort();
	}

	async #run() {
		let pause = PAUSE_MS;
		while (!this.abort.signal.aborted) {
			try {
				await this.#read(() => (pause = PAUSE_MS));
				if (this.follower.over?.()) return;
			} catch (error) {
				if (this.abort.signal.aborted) return;
				this.follower.lost(/** @type {Error} */ (error));
				if (error instanceof Problem && error.status < 500 && error.status !== 429) return;
			}
			await new Promise((resolve) => setTimeout(resolve, pause));
			pause = Math.min(2 * pause, PAUSE_MS_MAX);
		}
	}

	/** @param {() => void} onBytes */
	async #read(onBytes) {
		const headers = this.after ? { "Last-Event-ID": this.after } : undefined;
		const own = new AbortController();
		const end = () => own.abort();
		this.abort.signal.addEventListener("abort", end);
		let silence = setTimeout(end, SILENCE_MS);
		try {
			const answer = await request(this.path, {
				accept: "text/event-stream",
				headers,
				signal: own.signal,
			});
			this.follower.lost(null);
			const reader = new EventReader();
			const text = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
			for (;;) {
				const piece = await text?.read();
				if (!piece || piece.done) return;
				onBytes();
				clearTimeout(silence);
				silence = setTimeout(end, SILENCE_MS);
				for (const received of reader.read(piece.value)) {
					if (!this.abort.signal.aborted) this.follower.receive(received);
				}
				this.after = reader.id || this.after;
			}
		} catch (error) {
			if (error instanceof Problem || this.abort.signal.aborted) throw error;
			throw new Away("The stream of events broke.");
		} finally {
			clearTimeout(silence);
			this.abort.signal.removeEventListener("abort", end);
		}
	}
}
