/** The graph of a pipeline with live figures, as an element: `<waybill-graph>`. */

import { s, say, set } from "./dom.js";
import { layout } from "./layout.js";
import { points } from "./sparkline.js";

const SIZES = { width: 190, height: 66, gapX: 54, gapY: 22 };
const MARGIN = 8;
const NAME_CHARACTERS = 22;
const LINE_CHARACTERS = 27;
const SPARK = { width: 60, height: 14 };

export class WaybillGraph extends HTMLElement {
	constructor() {
		super();
		/** @type {Map<string, {group: SVGElement, lines: SVGElement[], spark: SVGElement}>} */
		this.drawn = new Map();
		/** @type {Map<string, SVGElement>} */
		this.labels = new Map();
		this.shape = "";
		/** @type {(id: string) => void} */
		this.picked = () => {};
	}

	/**
	 * @param {readonly GraphNode[]} nodes
	 * @param {readonly GraphEdge[]} edges
	 */
	draw(nodes, edges) {
		const shape = JSON.stringify([nodes, edges]);
		if (shape === this.shape) return;
		this.shape = shape;
		const found = layout(nodes, edges, SIZES);
		this.drawn.clear();
		this.labels.clear();
		const [width, height] = [found.width + 2 * MARGIN, found.height + 2 * MARGIN];
		const view = s("svg", {
			width,
			height,
			viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`,
			role: "group",
			"aria-label": "inputs, stages and sinks",
		});
		for (const edge of found.edges) view.append(this.#edge(edge));
		for (const node of nodes) {
			const at = found.nodes.get(node.id);
			if (at) view.append(this.#node(node, at));
		}
		this.replaceChildren(view);
	}

	/**
	 * @param {Map<string, Figure>} figures by the id of a node
	 * @param {Map<string, string>} flows by `from to` of an edge
	 * @param {number} now
	 * @param {string} selected
	 */
	show(figures, flows, now, selected) {
		for (const [id, { group, lines, spark }] of this.drawn) {
			const figure = figures.get(id) ?? { lines: [] };
			lines.forEach((each, i) => say(each, cut(figure.lines[i] ?? "", LINE_CHARACTERS)));
			set(spark, "points", figure.dots ? points(figure.dots, now, SPARK.width, SPARK.height) : "");
			set(group, "data-tone", figure.tone ?? null);
			set(group, "aria-label", figure.label ?? id);
			set(group, "aria-current", id === selected ? "true" : null);
		}
		for (const [id, label] of this.labels) say(label, flows.get(id) ?? "");
	}

	/** @param {Layout["edges"][0]} edge */
	#edge({ from, to, points: through }) {
		const middle = through[Math.floor((through.length - 1) / 2)];
		const next = through[Math.floor((through.length - 1) / 2) + 1];
		const label = s("text", {
			class: "flow figure",
			x: (middle.x + next.x) / 2,
			y: (middle.y + next.y) / 2 - 5,
			"text-anchor": "middle",
		});
		this.labels.set(`${from} ${to}`, label);
		return s("g", { class: "edge" }, s("path", { d: curve(through), fill: "none" }), label);
	}

	/**
	 * @param {GraphNode} node
	 * @param {Point} at
	 */
	#node({ id, kind }, at) {
		const name = id.slice(id.indexOf("/") + 1);
		const lines = [0, 1].map((i) => s("text", { class: "figure", x: 12, y: 42 + 16 * i }));
		const spark = s("polyline", {
			class: "spark",
			fill: "none",
			transform: `translate(${SIZES.width - SPARK.width - 10} 44)`,
		});
		const pick = () => this.picked(id);
		const group = s(
			"g",
			{
				class: `node ${kind}`,
				transform: `translate(${at.x} ${at.y})`,
				tabindex: 0,
				role: "button",
				onclick: pick,
				onkeydown: (/** @type {KeyboardEvent} */ event) => {
					if (event.key !== "Enter" && event.key !== " ") return;
					event.preventDefault();
					pick();
				},
			},
			s("title", {}, name),
			s("rect", { width: SIZES.width, height: SIZES.height, rx: kind === "stage" ? 8 : 20 }),
			s("text", { class: "kind", x: SIZES.width - 10, y: 16, "text-anchor": "end" }, kind),
			s("text", { class: "name", x: 12, y: 24 }, cut(name, NAME_CHARACTERS)),
			...lines,
			spark,
		);
		this.drawn.set(id, { group, lines, spark });
		return group;
	}
}

/**
 * @param {string} text
 * @param {number} most characters
 */
function cut(text, most) {
	return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** @param {Point[]} through */
function curve(through) {
	const [first, ...rest] = through;
	let last = first;
	const pieces = rest.map((point, i) => {
		const bend = (point.x - last.x) / 2;
		const straight = i % 2 === 1; // through a layer
		const piece = straight
			? `L${point.x} ${point.y}`
			: `C${last.x + bend} ${last.y} ${point.x - bend} ${point.y} ${point.x} ${point.y}`;
		last = point;
		return piece;
	});
	return `M${first.x} ${first.y}${pieces.join("")}`;
}

customElements.define("waybill-graph", WaybillGraph);
