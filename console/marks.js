/** When was what written? Marks of one partition, as it was seen from here. Pure. */

const MARKS_MAX = 32; // older ones are thinned out

/**
 * @param {Mark[]} marks oldest first
 * @param {number} at
 * @param {number} end of the partition then
 */
export function see(marks, at, end) {
	const last = marks.at(-1);
	if (last?.end === end) last.seen = at;
	else marks.push({ at, end, seen: at, before: last?.seen ?? -Infinity });
	if (marks.length <= MARKS_MAX) return;
	for (let i = 1; i < MARKS_MAX / 2; i++) {
		const [removed] = marks.splice(i, 1);
		marks[i].before = removed.before; // it has what the other had, too
	}
}

/**
 * Since when the first record after `arrived` is there: seen at `at`, not yet there at `before`.
 * @param {Mark[]} marks
 * @param {number} arrived
 */
export function since(marks, arrived) {
	return marks.find((each) => each.end > arrived) ?? null;
}
