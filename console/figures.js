/**
 * How far the inputs of all pipelines are: what the last answer says, and what this page has seen of
 * it change.
 */

import { ahead } from "./api.js";
import { see, since } from "./marks.js";

export const LOOK_MS = 2_000;
export const STALE_MS = 5_000;
const RATE_MS = 10_000;
const GAP_MS = 3 * LOOK_MS; // between two answers, at most

export class Figures {
	constructor() {
		/** @type {Map<string, Flow>} by uid */
		this.flows = new Map();
		/** @type {Map<string, Sample[]>} by uid */
		this.samples = new Map();
		/** @type {Map<string, Map<string, Mark[]>>} by uid and partition of an input */
		this.marks = new Map();
		this.at = 0; // by Waybill's clock
		this.readAt = -Infinity; // by performance.now()
	}

	get stale() {
		return performance.now() - this.readAt > STALE_MS;
	}

	clear() {
		for (const kept of [this.flows, this.samples, this.marks]) kept.clear();
	}

	/**
	 * Keep only those pipelines.
	 * @param {Set<string>} living
	 */
	keep(living) {
		for (const kept of [this.samples, this.marks])
			for (const uid of kept.keys()) if (!living.has(uid)) kept.delete(uid);
	}

	/** @param {{at: string, items: Flow[]}} flow */
	accept(flow) {
		const at = Date.parse(flow.at);
		this.at = at;
		this.readAt = performance.now();
		this.flows = new Map(flow.items.map((each) => [each.uid, each]));
		for (const each of flow.items.filter((one) => one.reason === null)) {
			const samples = this.samples.get(each.uid) ?? [];
			if (samples.at(-1)?.at !== at) {
				samples.push({ at, arrived: each.inputs.reduce((sum, one) => sum + one.arrived, 0) });
				this.#mark(each, at);
			}
			while (samples.length && at - samples[0].at > RATE_MS + GAP_MS) samples.shift();
			this.samples.set(each.uid, samples);
		}
	}

	/**
	 * When was what written? Seen from here, by partition.
	 * @param {Flow} flow
	 * @param {number} at
	 */
	#mark({ uid, inputs }, at) {
		const known = this.marks.get(uid) ?? new Map();
		this.marks.set(uid, known);
		for (const input of inputs) {
			for (const { partition, end } of input.partitions) {
				const key = `${input.name}/${partition}`;
				const marks = known.get(key) ?? [];
				see(marks, at, end);
				known.set(key, marks);
			}
		}
	}

	/**
	 * Records a second that arrive, over the last ten seconds; null: not known yet.
	 * @param {string} uid
	 */
	rate(uid) {
		const samples = this.samples.get(uid) ?? [];
		const last = samples.at(-1);
		if (!last || this.at - last.at > STALE_MS) return null;
		const first = samples.find((each) => last.at - each.at <= RATE_MS);
		if (!first || last.at === first.at) return null;
		return (Math.max(0, last.arrived - first.arrived) * 1_000) / (last.at - first.at);
	}

	/**
	 * How many records have not arrived yet; null: not known.
	 * @param {string} uid
	 */
	pending(uid) {
		const inputs = this.flows.get(uid)?.inputs ?? [];
		return inputs.length
			? inputs.reduce((sum, each) => sum + each.written - each.arrived, 0)
			: null;
	}

	/**
	 * How old the oldest unfinished record is, at least: since this page has seen it written. null: there is none.
	 * @param {string} uid
	 * @returns {{ms: number, older: boolean} | null}
	 */
	unfinished(uid) {
		const inputs = this.flows.get(uid)?.inputs ?? [];
		let oldest = null;
		for (const input of inputs) {
			for (const { partition, end, arrived } of input.partitions) {
				if (end <= arrived) continue;
				const marks = this.marks.get(uid)?.get(`${input.name}/${partition}`) ?? [];
				const mark = since(marks, arrived);
				if (mark && (!oldest || mark.at < oldest.at)) oldest = mark;
			}
		}
		if (!oldest) return null;
		const { at, before } = oldest;
		return { ms: Math.max(0, Date.now() + ahead() - at), older: at - before > GAP_MS };
	}
}
