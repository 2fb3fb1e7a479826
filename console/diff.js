/** What is new in a text, line by line. Pure. */

/**
 * Both texts, in their order, as a diff shows them.
 * @param {string} before
 * @param {string} after
 * @returns {DiffLine[]}
 */
export function diff(before, after) {
	const [old, now] = [before.split("\n"), after.split("\n")];
	let from = 0;
	while (from < old.length && from < now.length && old[from] === now[from]) from++;
	let [oldTo, nowTo] = [old.length, now.length];
	for (; oldTo > from && nowTo > from && old[oldTo - 1] === now[nowTo - 1]; nowTo--) oldTo--;
	return [
		...old.slice(0, from).map((text) => ({ sign: " ", text })),
		...changes(old.slice(from, oldTo), now.slice(from, nowTo)),
		...old.slice(oldTo).map((text) => ({ sign: " ", text })),
	];
}

/**
 * By the longest run of lines that both have.
 * @param {string[]} old
 * @param {string[]} now
 */
function changes(old, now) {
	const common = old.map(() => new Uint16Array(now.length + 1));
	common.push(new Uint16Array(now.length + 1));
	for (let i = old.length - 1; i >= 0; i--)
		for (let j = now.length - 1; j >= 0; j--)
			common[i][j] =
				old[i] === now[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
	/** @type {DiffLine[]} */
	const lines = [];
	for (let [i, j] = [0, 0]; i < old.length || j < now.length;) {
		if (i < old.length && j < now.length && old[i] === now[j]) {
			lines.push({ sign: " ", text: old[i++] });
			j++;
		} else if (j === now.length || (i < old.length && common[i + 1][j] >= common[i][j + 1]))
			lines.push({ sign: "-", text: old[i++] });
		else lines.push({ sign: "+", text: now[j++] });
	}
	return lines;
}
