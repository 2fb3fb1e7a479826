/** What the graph of a pipeline says at each node and edge. */

import { live } from "./live.js";
import { duration, rate, short } from "./words.js";

/**
 * @param {any} detail
 * @param {Flow | undefined} flow
 */
export function figuresOf(detail, flow) {
	/** @type {Map<string, Figure>} */
	const figures = new Map();
	const flows = new Map();
	const batches = live.batches.get(detail.uid) ?? [];
	const perSecond = flow?.reason === null ? live.figures.rate(detail.uid) : null;
	for (const input of detail.inputs) {
		const found = flow?.inputs.find((each) => each.name === input.name);
		const left = found ? `${short(found.written - found.arrived)} unfinished` : "";
		figures.set(`input/${input.name}`, {
			lines: [input.topic, left],
			label: `input ${input.name}, topic ${input.topic}, ${left}`,
		});
	}
	for (const stage of detail.stages) {
		const mine = batches.filter((each) => each.stage === stage.name);
		const last = mine.at(-1);
		const took = last
			? `batch ${duration(last.committedAt - last.startedAt)}`
			: stage.last_batch
				? `batch ${stage.last_batch.batch}`
				: "no batch yet";
		const behind = (flow?.sinks ?? []).filter((each) => each.stage === stage.name);
		const most = behind.length
			? `${short(Math.max(...behind.map((each) => each.behind)))} behind`
			: "";
		const blocked = stage.sinks.some(
			(/** @type {any} */ sink) => sink.blocked_by === "sink_retrying",
		);
		const dots = mine.map((each) => ({
			at: each.committedAt,
			value: each.committedAt - each.startedAt,
		}));
		figures.set(`stage/${stage.name}`, {
			lines: [most, took],
			dots,
			tone: blocked || ["Failed", "Recovering"].includes(detail.phase) ? "bad" : undefined,
			label: `stage ${stage.name}, ${most}, ${took}`,
		});
		for (const sink of stage.sinks) {
			const lag = flow?.sinks.find((each) => each.stage === stage.name && each.name === sink.name);
			const lines = [sink.kind, lag ? `${short(lag.behind)} behind` : ""];
			const tone = sink.blocked_by === "sink_retrying" ? "bad" : undefined;
			figures.set(`sink/${sink.name}`, {
				lines,
				tone,
				label: `sink ${sink.name}, ${lines.join(", ")}`,
			});
			flows.set(
				`stage/${stage.name} sink/${sink.name}`,
				rowsPerSecond(mine.filter((each) => each.sink === sink.name)),
			);
		}
	}
	const roots = detail.inputs.map((/** @type {any} */ each) => `input/${each.name}`);
	for (const edge of detail.graph.edges) {
		if (roots.length === 1 && roots.includes(edge.from))
			flows.set(`${edge.from} ${edge.to}`, perSecond === null ? "" : rate(perSecond));
	}
	return { figures, flows };
}

/** @param {Batch[]} batches */
function rowsPerSecond(batches) {
	const from = live.now() - 10_000;
	const recent = batches.filter((each) => each.committedAt > from);
	return recent.length ? rate(recent.reduce((sum, each) => sum + each.rows, 0) / 10) : "";
}
