/**
 * Positions of the nodes of a graph: in layers from left to right, with few crossings. Pure.
 * A line over several layers passes through points of its own in each, so it goes around nodes.
 */

const SWEEPS = 12;
const BEND = 0.35; // of a node's height: how much room a line takes that only passes

/**
 * @param {readonly LayoutNode[]} nodes
 * @param {readonly Edge[]} edges
 * @param {Sizes} sizes
 * @returns {Layout}
 */
export function layout(nodes, edges, sizes) {
	const known = new Set(nodes.map((each) => each.id));
	const used = forward(
		nodes,
		edges.filter((e) => known.has(e.from) && known.has(e.to) && e.from !== e.to),
	);
	const layerOf = layers(nodes, used);
	const { layered, links, chains } = withBends(nodes, used, layerOf);
	const { order, crossings } = fewestCrossings(layered, links);
	const yOf = heights(order, links, sizes);
	const xOf = (/** @type {number} */ layer) => layer * (sizes.width + sizes.gapX);
	const top = Math.min(0, ...yOf.values());
	const at = (/** @type {Place} */ place) => ({
		x: xOf(place.layer),
		y: (yOf.get(place.id) ?? 0) - top,
	});
	const places = order.flat();
	const found = new Map(places.filter((p) => p.real).map((p) => [p.id, at(p)]));
	const bottom = Math.max(0, ...[...found.values()].map((p) => p.y)) + sizes.height;
	return {
		nodes: found,
		edges: chains.map(({ edge, through }) => ({ ...edge, points: line(through.map(at), sizes) })),
		width: order.length ? xOf(order.length - 1) + sizes.width : 0,
		height: places.length ? bottom : 0,
		crossings,
	};
}

/**
 * Without lines that lead back: a graph of a pipeline has none, but nothing here must hang on one.
 * @param {readonly LayoutNode[]} nodes
 * @param {readonly Edge[]} edges
 */
function forward(nodes, edges) {
	const state = new Map();
	/** @type {Edge[]} */
	const kept = [];
	const visit = (/** @type {string} */ id) => {
		state.set(id, "open");
		for (const edge of edges.filter((each) => each.from === id)) {
			if (state.get(edge.to) === "open") continue;
			kept.push(edge);
			if (!state.has(edge.to)) visit(edge.to);
		}
		state.set(id, "done");
	};
	for (const { id } of nodes) if (!state.has(id)) visit(id);
	return kept;
}

/**
 * One after the last of those before it.
 * @param {readonly LayoutNode[]} nodes
 * @param {readonly Edge[]} edges
 */
function layers(nodes, edges) {
	const found = new Map(nodes.map((each) => [each.id, 0]));
	for (let turn = 0; turn < nodes.length; turn++) {
		let moved = false;
		for (const { from, to } of edges) {
			const next = (found.get(from) ?? 0) + 1;
			if ((found.get(to) ?? 0) < next) {
				found.set(to, next);
				moved = true;
			}
		}
		if (!moved) break;
	}
	return found;
}

/**
 * @param {readonly LayoutNode[]} nodes
 * @param {readonly Edge[]} edges
 * @param {Map<string, number>} layerOf
 */
function withBends(nodes, edges, layerOf) {
	const count = Math.max(-1, ...layerOf.values()) + 1;
	/** @type {Place[][]} */
	const layered = Array.from({ length: count }, () => []);
	const places = new Map();
	for (const { id } of nodes) {
		const place = { id, layer: layerOf.get(id) ?? 0, real: true };
		places.set(id, place);
		layered[place.layer].push(place);
	}
	/** @type {[string, string][]} */
	const links = [];
	const chains = edges.map((edge, number) => {
		const through = [places.get(edge.from)];
		for (let layer = through[0].layer + 1; layer < places.get(edge.to).layer; layer++) {
			const bend = { id: `bend ${number} ${layer}`, layer, real: false };
			layered[layer].push(bend);
			through.push(bend);
		}
		through.push(places.get(edge.to));
		for (let i = 1; i < through.length; i++) links.push([through[i - 1].id, through[i].id]);
		return { edge, through };
	});
	return { layered, links, chains };
}

/**
 * Each node near the middle of its neighbours, to and fro; the best of all tries counts.
 * @param {Place[][]} layered
 * @param {[string, string][]} links
 */
function fewestCrossings(layered, links) {
	let order = layered.map((layer) => [...layer]);
	let best = { order, crossings: crossingsIn(order, links) };
	const before = neighbours(links.map(([from, to]) => [to, from]));
	const after = neighbours(links);
	for (let sweep = 0; sweep < SWEEPS && best.crossings > 0; sweep++) {
		const down = sweep % 2 === 0;
		order = order.map((layer) => [...layer]);
		const inTurn = down ? order.keys() : [...order.keys()].reverse();
		for (const at of inTurn) {
			const other = order[down ? at - 1 : at + 1];
			if (other) order[at] = nearMiddle(order[at], other, down ? before : after);
		}
		const crossings = crossingsIn(order, links);
		if (crossings < best.crossings) best = { order, crossings };
	}
	return best;
}

/** @param {[string, string][]} links */
function neighbours(links) {
	/** @type {Map<string, string[]>} */
	const found = new Map();
	for (const [from, to] of links) found.set(from, [...(found.get(from) ?? []), to]);
	return found;
}

/**
 * @param {Place[]} layer
 * @param {Place[]} other
 * @param {Map<string, string[]>} near
 */
function nearMiddle(layer, other, near) {
	const place = new Map(other.map((each, i) => [each.id, i]));
	const middle = new Map(
		layer.map((each, i) => {
			const at = (near.get(each.id) ?? []).map((id) => place.get(id) ?? 0);
			return [each.id, at.length ? at.reduce((a, b) => a + b, 0) / at.length : i];
		}),
	);
	return [...layer].sort((a, b) => (middle.get(a.id) ?? 0) - (middle.get(b.id) ?? 0));
}

/**
 * @param {Place[][]} order
 * @param {[string, string][]} links
 */
export function crossingsIn(order, links) {
	const place = new Map();
	order.forEach((layer, number) => layer.forEach((each, i) => place.set(each.id, [number, i])));
	let count = 0;
	for (let number = 0; number < order.length - 1; number++) {
		const here = links.filter(([from]) => place.get(from)?.[0] === number);
		const pairs = here.map(([from, to]) => [place.get(from)[1], place.get(to)[1]]);
		for (let i = 0; i < pairs.length; i++) {
			for (let j = i + 1; j < pairs.length; j++) {
				if ((pairs[i][0] - pairs[j][0]) * (pairs[i][1] - pairs[j][1]) < 0) count++;
			}
		}
	}
	return count;
}

/**
 * How far down each is: near its neighbours, and never over the one before it in its layer.
 * @param {Place[][]} order
 * @param {[string, string][]} links
 * @param {Sizes} sizes
 */
function heights(order, links, sizes) {
	const room = (/** @type {Place} */ place) =>
		(place.real ? sizes.height : sizes.height * BEND) + sizes.gapY;
	const y = new Map();
	for (const layer of order) {
		let next = 0;
		for (const each of layer) {
			y.set(each.id, next);
			next += room(each);
		}
	}
	const before = neighbours(links.map(([from, to]) => [to, from]));
	const after = neighbours(links);
	for (let turn = 0; turn < 6; turn++) {
		const near = turn % 2 === 0 ? before : after;
		const inTurn = turn % 2 === 0 ? order : [...order].reverse();
		for (const layer of inTurn) settle(layer, near, y, room);
	}
	return y;
}

/**
 * @param {Place[]} layer
 * @param {Map<string, string[]>} near
 * @param {Map<string, number>} y
 * @param {(place: Place) => number} room
 */
function settle(layer, near, y, room) {
	const wished = layer.map((each) => {
		const at = (near.get(each.id) ?? []).map((id) => y.get(id) ?? 0);
		return at.length ? at.reduce((a, b) => a + b, 0) / at.length : (y.get(each.id) ?? 0);
	});
	const placed = [...wished];
	for (let i = 1; i < layer.length; i++) {
		placed[i] = Math.max(placed[i], placed[i - 1] + room(layer[i - 1]));
	}
	const pushed = placed.reduce((sum, at, i) => sum + at - wished[i], 0) / Math.max(1, layer.length);
	layer.forEach((each, i) => y.set(each.id, placed[i] - pushed));
}

/**
 * From the right edge of the first to the left edge of the last.
 * @param {Point[]} through
 * @param {Sizes} sizes
 */
function line(through, sizes) {
	const half = sizes.height / 2;
	const inner = through.slice(1, -1).flatMap((point) => [
		{ x: point.x, y: point.y + half },
		{ x: point.x + sizes.width, y: point.y + half },
	]);
	const first = through[0];
	const last = through[through.length - 1];
	return [
		{ x: first.x + sizes.width, y: first.y + half },
		...inner,
		{ x: last.x, y: last.y + half },
	];
}
