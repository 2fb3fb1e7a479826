/** Talks to Waybill over its public HTTP interface. The key is in the memory of this tab only. */

let key = "";

/** @param {string} text */
export function useKey(text) {
	key = text.trim();
}

export function hasKey() {
	return key !== "";
}

/** Waybill has refused, and says why. */
export class Problem extends Error {
	/**
	 * @param {number} status
	 * @param {Record<string, any>} body
	 */
	constructor(status, body) {
		super(String(body.detail ?? body.title ?? `HTTP ${status}`));
		this.status = status;
		this.body = body;
		this.slug =
			String(body.type ?? "")
				.split(":")
				.pop() ?? "";
		/** @type {string | null} */
		this.hint = body.hint ?? null;
		/** @type {PlacedError[]} */
		this.errors = Array.isArray(body.errors) ? body.errors : [];
	}

	get needsKey() {
		return this.status === 401;
	}
}

/** Nothing has answered, or nothing that is Waybill. */
export class Away extends Error {}

const WRONG_MS = 2_000; // of a clock; less is the time of the way, and a header has whole seconds
let clockAhead = 0;

/** How far Waybill's clock is ahead of the one of this machine, if one of both is wrong. */
export function ahead() {
	return clockAhead;
}

/** @param {Response} answer */
function setClock(answer) {
	const sent = Date.parse(answer.headers.get("date") ?? "");
	if (Number.isNaN(sent)) return;
	const found = sent + 500 - Date.now();
	clockAhead = Math.abs(found) > WRONG_MS ? found : 0;
}

/**
 * The answer, whatever it holds; Problem or Away if there is none.
 * @param {string} path
 * @param {Asked} [asked]
 * @returns {Promise<Response>}
 */
export async function request(path, asked = {}) {
	const headers = new Headers(asked.headers);
	headers.set("Accept", asked.accept ?? "application/json");
	if (asked.body !== undefined) headers.set("Content-Type", asked.type ?? "application/json");
	if (key) headers.set("Authorization", `Bearer ${key}`);
	let answer;
	try {
		answer = await fetch(path, {
			method: asked.method ?? "GET",
			body: asked.body,
			headers,
			signal: asked.signal,
			cache: "no-store",
			credentials: "omit",
		});
	} catch (error) {
		if (givenUp(asked)) throw error;
		throw new Away("Waybill does not answer.");
	}
	setClock(answer);
	if (answer.ok) return answer;
	throw new Problem(answer.status, await bodyOf(answer));
}

/**
 * @param {string} path
 * @param {Asked} [asked]
 * @returns {Promise<any>}
 */
export async function ask(path, asked = {}) {
	const answer = await request(path, asked);
	try {
		return await answer.json();
	} catch (error) {
		if (givenUp(asked)) throw error;
		throw new Away(`The answer of ${path} was cut off.`);
	}
}

/**
 * The items of all pages of a list.
 * @param {string} path
 * @param {AbortSignal} signal
 * @returns {Promise<any[]>}
 */
export async function all(path, signal) {
	const found = [];
	let cursor = "";
	do {
		const query = `${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`;
		const page = await ask(cursor ? path + query : path, { signal });
		found.push(...page.items);
		cursor = page.next_cursor;
	} while (cursor);
	return found;
}

/**
 * Nobody waits for it any more; time that is over is another thing.
 * @param {Asked} asked
 */
function givenUp({ signal }) {
	return signal?.aborted && signal.reason?.name !== "TimeoutError";
}

/**
 * @param {string} path
 * @param {unknown} value
 * @param {AbortSignal} [signal]
 */
export function post(path, value, signal) {
	return ask(path, { method: "POST", body: JSON.stringify(value), signal });
}

/** @param {Response} answer */
async function bodyOf(answer) {
	try {
		const body = await answer.json();
		return typeof body === "object" && body !== null ? body : { detail: String(body) };
	} catch {
		return { detail: `HTTP ${answer.status} ${answer.statusText}` };
	}
}

/**
 * A change of a pipeline, to its end: the operation once it is done, or the Problem it has failed with.
 * @param {string} path
 * @param {Asked} asked
 * @returns {Promise<any>}
 */
export async function carryOut(path, asked) {
	try {
		return await carriedOut(path, asked);
	} catch (error) {
		if (!(error instanceof Away)) throw error;
		throw new Away(
			"The connection broke. What was asked may be done all the same: look before you repeat it.",
		);
	}
}

/**
 * @param {string} path
 * @param {Asked} asked
 */
async function carriedOut(path, asked) {
	const answer = await request(path, asked);
	let reply = await answer.json();
	if (answer.status !== 202) return reply;
	for (;;) {
		reply = await ask(`/v1/operations/${encodeURIComponent(reply.operation ?? reply.id)}?wait=30`, {
			signal: asked.signal,
		});
		if (reply.state === "failed") throw failed(reply);
		if (reply.state !== "pending") return reply;
	}
}

/** @param {any} reply */
function failed(reply) {
	const said = reply.errors.map((/** @type {PlacedError} */ each) => each.message).join("; ");
	const hint = reply.errors.map((/** @type {PlacedError} */ each) => each.hint).find(Boolean);
	const type = `urn:waybill:problem:${reply.problem}`;
	return new Problem(409, { ...reply, detail: said || `${reply.action} has failed`, hint, type });
}

/**
 * What a manifest would do: errors at their lines are the answer too, whoever has found them. That
 * a sink would write where another pipeline writes is a warning here: whoever applies it is asked.
 * @param {string} manifest
 * @param {AbortSignal} signal
 * @returns {Promise<{errors: PlacedError[], warnings: string[], changes: any[] | null, graph: any}>}
 */
export async function check(manifest, signal) {
	try {
		const reply = await post("/v1/validate", { manifest, allow_shared: true }, signal);
		if (!("operation" in reply)) return reply;
		for (;;) {
			const path = `/v1/operations/${encodeURIComponent(reply.operation)}?wait=30`;
			const operation = await ask(path, { signal });
			if (operation.state === "failed") throw failed(operation);
			if (operation.result) return operation.result;
			if (operation.state !== "pending") throw new Away("What the check has found was not kept.");
		}
	} catch (error) {
		if (error instanceof Problem && error.slug === "invalid" && error.errors.length > 0) {
			return { errors: error.errors, warnings: [], changes: null, graph: null };
		}
		throw error;
	}
}

/** @param {string} name */
export function pipelinePath(name) {
	return `/v1/pipelines/${encodeURIComponent(name)}`;
}

/**
 * Of an address, without what is empty.
 * @param {Record<string, string | number | null>} values
 */
export function query(values) {
	const given = Object.entries(values).filter(([, value]) => value);
	return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}
