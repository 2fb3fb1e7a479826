/** Every view has an address. A link of the page changes the view without loading it again. */

/** @type {{pattern: RegExp, names: string[], open: Opener}[]} */
const routes = [];
/** @type {View | null} */
let shown = null;
/** @type {(view: View, moved: boolean) => void} */
let show = () => {};

/**
 * @param {string} template as in `/p/{name}`
 * @param {Opener} open
 */
export function route(template, open) {
	const names = [...template.matchAll(/{(\w+)}/g)].map((found) => found[1]);
	routes.push({ pattern: new RegExp(`^${template.replace(/{\w+}/g, "([^/]+)")}$`), names, open });
}

/** @param {(view: View, moved: boolean) => void} shower */
export function start(shower) {
	show = shower;
	window.addEventListener("popstate", () => render(true));
	document.addEventListener("click", (event) => {
		const link = event.target instanceof Element ? event.target.closest("a") : null;
		const plain =
			event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
		if (!link || !plain || link.target || link.hasAttribute("download") || event.defaultPrevented)
			return;
		const url = new URL(link.href, location.href);
		if (url.origin !== location.origin || url.hash || !match(url.pathname)) return;
		event.preventDefault();
		go(url.pathname + url.search);
	});
	render(false);
}

/**
 * @param {string} address
 * @param {boolean} [instead] of the address that is shown now
 */
export function go(address, instead = false) {
	if (instead) history.replaceState(null, "", address);
	else history.pushState(null, "", address);
	render(true);
}

/** The same view again, as with another key; unless somebody has written in it. */
export function renew() {
	if (!shown?.keeps?.()) render(true);
}

/** @param {string} path */
function match(path) {
	for (const { pattern, names, open } of routes) {
		const found = pattern.exec(path);
		if (!found) continue;
		try {
			const params = Object.fromEntries(
				names.map((name, i) => [name, decodeURIComponent(found[i + 1])]),
			);
			return { open, params };
		} catch {
			return null; // not the address of anything
		}
	}
	return null;
}

/** @param {boolean} moved */
function render(moved) {
	const found = match(location.pathname) ?? match("/");
	if (!found) return;
	shown?.close?.();
	shown = found.open(found.params, new URLSearchParams(location.search));
	show(shown, moved);
}

/** @param {string} name */
export function toPipeline(name) {
	return `/p/${encodeURIComponent(name)}`;
}

/** @param {string} token */
export function toToken(token) {
	return `/t/${encodeURIComponent(token)}`;
}

/** @param {string} name */
export function toDead(name) {
	return `${toPipeline(name)}/dead-letters`;
}
