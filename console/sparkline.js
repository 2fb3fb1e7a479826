/** A line of the last ten minutes: how long batches took, or how many records arrived. */

import { s, set } from "./dom.js";

const SPAN_MS = 10 * 60_000;
const WIDTH = 96;
const HEIGHT = 20;

/**
 * The points of a polyline: now is at the right edge, zero at the bottom. Pure.
 * @param {readonly Dot[]} dots
 * @param {number} now
 * @param {number} width
 * @param {number} height
 */
export function points(dots, now, width, height) {
	const most = Math.max(1, ...dots.map((each) => each.value));
	return dots
		.filter((each) => now - each.at <= SPAN_MS)
		.map(({ at, value }) => {
			const x = width * (1 - (now - at) / SPAN_MS);
			return `${x.toFixed(1)},${(height - 1 - (value / most) * (height - 2)).toFixed(1)}`;
		})
		.join(" ");
}

export function sparkline() {
	const path = s("polyline", { class: "spark", fill: "none" });
	const element = s(
		"svg",
		{ class: "sparkline", width: WIDTH, height: HEIGHT, "aria-hidden": "true" },
		path,
	);
	return {
		element,
		/**
		 * @param {readonly Dot[]} dots
		 * @param {number} now
		 */
		draw(dots, now) {
			set(path, "points", points(dots, now, WIDTH, HEIGHT));
		},
	};
}
