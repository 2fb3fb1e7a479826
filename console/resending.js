/** Sends dead letters again, in as many requests as that takes. Pure but for `post`. */

export const AT_ONCE = 1_000; // dead letters in one request
const CANNOT_BE_SENT = [404, 409, 410];

/**
 * Those that cannot be sent are left out. What was sent before an error counts: it is with the error.
 * @param {readonly string[]} ids
 * @param {(ids: readonly string[]) => Promise<any>} post sends some of them, all or none
 * @param {(sent: Resent) => void} progress
 * @returns {Promise<Resent>}
 */
export async function resend(ids, post, progress) {
	/** @type {Resent} */
	const sent = { replayed: 0, already: 0, tokens: [], leftOut: new Map(), error: null };
	const waiting = [];
	for (let at = 0; at < ids.length; at += AT_ONCE) waiting.push(ids.slice(at, at + AT_ONCE));
	for (let some = waiting.shift(); some && !sent.error; some = waiting.shift()) {
		try {
			const done = await post(some);
			sent.replayed += done.replayed;
			sent.already += done.already;
			sent.tokens.push(done.token);
		} catch (error) {
			waiting.unshift(...smaller(some, error, sent));
		}
		progress(sent);
	}
	return sent;
}

/**
 * What is asked instead of a request that was refused; nothing if nothing helps.
 * @param {readonly string[]} ids
 * @param {any} error
 * @param {Resent} sent
 */
function smaller(ids, error, sent) {
	const half = ids.length >> 1;
	if (error.status === 413 && half) return [ids.slice(0, half), ids.slice(half)];
	const rejected = CANNOT_BE_SENT.includes(error.status) ? (error.body?.rejected ?? []) : [];
	if (!rejected.length) {
		sent.error = error;
		return [];
	}
	const reasons = new Map(rejected.map((/** @type {any} */ each) => [each.index, each.reason]));
	for (const [index, reason] of reasons) sent.leftOut.set(ids[index], reason);
	const rest = ids.filter((_, index) => !reasons.has(index));
	return rest.length ? [rest] : [];
}
