/** When a token waited for a sink, and when the sink worked at it: the bars of the waterfall. Pure. */

/**
 * When a sink worked at it, in milliseconds; what goes on ends now.
 * @param {SinkOutcome} sink
 * @param {StageOutcome} stage
 * @param {number} issuedAt
 * @param {number} now
 * @returns {{wait: Bar | null, work: Bar | null}}
 */
export function bars(sink, stage, issuedAt, now) {
	const tone = toneOf(sink, stage);
	if (sink.state === "committed") {
		const end = Date.parse(sink.committed_at ?? stage.committed_at ?? "");
		if (Number.isNaN(end)) return { wait: null, work: null };
		const start = Math.min(end, sink.read_at ? Math.max(issuedAt, Date.parse(sink.read_at)) : end);
		return { wait: bar(issuedAt, start, "wait"), work: bar(start, Math.max(end, start), tone) };
	}
	if (sink.state === "waiting") return { wait: bar(issuedAt, Math.max(now, issuedAt), tone), work: null };
	return { wait: null, work: null };
}

/**
 * @param {number} start
 * @param {number} end
 * @param {string} tone
 */
function bar(start, end, tone) {
	return { start: Math.min(start, end), end, tone };
}

/**
 * @param {SinkOutcome} sink
 * @param {StageOutcome} stage
 */
export function toneOf(sink, stage) {
	if (sink.state === "committed") return "good";
	if (sink.state === "lost") return "bad";
	if (sink.state === "removed") return "off";
	return stage.blocked_by || sink.blocked_by === "sink_retrying" ? "bad" : "busy";
}
