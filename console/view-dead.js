/** The dead letters of a pipeline: a list with filters, one of them whole, and sending them again. */

import { ask, pipelinePath, post } from "./api.js";
import { confirmed, fill, h, notice, say, set, time, trouble, wide } from "./dom.js";
import { letterView } from "./letter.js";
import { live } from "./live.js";
import { toDead, toPipeline, toToken } from "./router.js";
import { count, spelled } from "./words.js";

const PAGE = 100;
const REPLAY_MAX = 1_000;
const REASONS = ["malformed", "violated", "failed", "refused"];
const COLUMNS = ["", "Since", "Record", "Stage", "Reason", "Message", "Value"];

/**
 * @param {string} name
 * @param {URLSearchParams} query
 * @returns {View}
 */
export function deadView(name, query) {
	const path = `${pipelinePath(name)}/dead-letters`;
	const reason = h(
		"select",
		{ "aria-label": "Reason", onchange: filter },
		h("option", { value: "" }, "any reason"),
		...REASONS.map((each) => h("option", { value: each }, each)),
	);
	const stage = h(
		"select",
		{ "aria-label": "Stage", onchange: filter },
		h("option", { value: "" }, "any stage"),
	);
	const since = h("input", { type: "datetime-local", "aria-label": "Since", onchange: filter });
	const again = h("input", { type: "checkbox" });
	const replay = h(
		"button",
		{ type: "button", onclick: () => void send([...chosen]) },
		"Send again",
	);
	const every = h("input", {
		type: "checkbox",
		"aria-label": "Choose all that are shown",
		onchange: chooseAll,
	});
	const told = h("div", { role: "status", "aria-live": "polite" });
	const body = h("tbody", {});
	const more = h("button", { type: "button", onclick: () => void load() }, "Show more");
	const counted = h("span", { class: "quiet" });
	const panel = h("div", { class: "panel-place" });
	const headings = COLUMNS.map((each, i) => h("th", { scope: "col" }, i === 0 ? every : each));
	const element = h(
		"div",
		{},
		h(
			"div",
			{ class: "tools" },
			h("h1", {}, "Dead letters of ", h("a", { href: toPipeline(name) }, name)),
			counted,
		),
		h(
			"div",
			{ class: "tools" },
			reason,
			stage,
			h("label", {}, "since ", since),
			h(
				"span",
				{ class: "send-again" },
				replay,
				h("label", {}, again, " also what was sent before"),
			),
		),
		told,
		panel,
		wide(
			"dead letters",
			h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...headings)), body),
		),
		h("div", { class: "actions" }, more),
	);
	const abort = new AbortController();
	/** @type {Set<string>} */
	const chosen = new Set();
	/** @type {string | null} */
	let cursor = null;
	let shown = 0;
	let turn = 0;
	let opening = 0;
	reason.value = query.get("reason") ?? "";

	function wanted() {
		const found = new URLSearchParams({ limit: String(PAGE) });
		const from = since.value ? new Date(since.value) : null;
		if (reason.value) found.set("reason", reason.value);
		if (stage.value) found.set("stage", stage.value);
		if (from) found.set("since", from.toISOString());
		if (cursor) found.set("cursor", cursor);
		return found;
	}

	function filter() {
		const kept = new URLSearchParams();
		if (reason.value) kept.set("reason", reason.value);
		if (stage.value) kept.set("stage", stage.value);
		history.replaceState(null, "", `${toDead(name)}${kept.size ? `?${kept}` : ""}`);
		cursor = null;
		shown = 0;
		chosen.clear();
		every.checked = false;
		fill(body);
		void load();
	}

	/** A page may be empty, and still not the last: then there was much to look through. */
	async function load() {
		const mine = ++turn;
		more.disabled = true;
		try {
			for (let found = 0; found === 0;) {
				const page = await ask(`${path}?${wanted()}`, { signal: abort.signal });
				if (mine !== turn) return;
				body.append(...page.items.map(row));
				found = page.items.length;
				shown += found;
				cursor = page.next_cursor;
				if (!cursor) break;
				if (!found) say(counted, "looking further back…");
			}
			if (shown) fill(told);
			else fill(told, h("p", { class: "quiet" }, "No dead letters."));
			say(counted, shown ? `${shown}${cursor ? " shown, there are more" : ""}` : "");
		} catch (error) {
			if (!abort.signal.aborted && mine === turn) fill(told, trouble(error, load));
		} finally {
			if (mine === turn) {
				more.disabled = false;
				set(more, "hidden", !cursor);
				showChosen();
			}
		}
	}

	/** @param {any} letter */
	function row(letter) {
		const choose = h("input", {
			type: "checkbox",
			"aria-label": `Choose ${letter.id}`,
			"data-id": letter.id,
			onchange: (/** @type {Event} */ event) => {
				if (/** @type {HTMLInputElement} */ (event.target).checked) chosen.add(letter.id);
				else chosen.delete(letter.id);
				showChosen();
			},
		});
		const place = `${letter.source.topic}[${letter.source.partition}] ${letter.source.offset}`;
		const open = h(
			"a",
			{
				href: `${toDead(name)}?id=${encodeURIComponent(letter.id)}`,
				onclick: (/** @type {Event} */ event) => {
					event.preventDefault();
					void openLetter(letter.id);
				},
			},
			place,
		);
		return h(
			"tr",
			{},
			h("td", {}, choose),
			h("td", {}, time(letter.at)),
			h("th", { scope: "row" }, open),
			h("td", {}, letter.sink ? `${letter.stage}, ${letter.sink}` : letter.stage),
			h(
				"td",
				{},
				letter.rule ? `${spelled(letter.reason)}: ${letter.rule}` : spelled(letter.reason),
			),
			h("td", { class: "message" }, letter.message),
			h("td", { class: "value" }, h("code", {}, (letter.value ?? "").slice(0, 120))),
		);
	}

	function chooseAll() {
		for (const each of /** @type {NodeListOf<HTMLInputElement>} */ (
			body.querySelectorAll("input[data-id]")
		)) {
			each.checked = every.checked;
			const id = each.getAttribute("data-id") ?? "";
			if (every.checked) chosen.add(id);
			else chosen.delete(id);
		}
		showChosen();
	}

	function showChosen() {
		say(replay, chosen.size ? `Send ${count(chosen.size, "record")} again` : "Send again");
		replay.disabled = chosen.size === 0 || chosen.size > REPLAY_MAX;
		set(replay, "title", chosen.size > REPLAY_MAX ? `${REPLAY_MAX} at once is the most` : null);
		set(/** @type {Element} */ (replay.parentElement), "hidden", !live.may("write"));
	}

	/** @param {string} id */
	async function openLetter(id) {
		const mine = ++opening;
		history.replaceState(null, "", `${toDead(name)}?id=${encodeURIComponent(id)}`);
		fill(panel, h("p", { class: "quiet" }, "Loading…"));
		try {
			const letter = await ask(`${path}/${encodeURIComponent(id)}`, { signal: abort.signal });
			if (mine !== opening) return;
			const one = live.may("write")
				? h("button", { type: "button", onclick: () => void send([id]) }, "Send this one again")
				: null;
			const close = h(
				"button",
				{ type: "button", class: "small", onclick: () => fill(panel) },
				"Close",
			);
			fill(
				panel,
				h(
					"div",
					{ class: "panel" },
					h("div", { class: "actions" }, one, close),
					letterView(letter),
				),
			);
			panel.scrollIntoView({ block: "nearest" });
		} catch (error) {
			if (!abort.signal.aborted && mine === opening)
				fill(
					panel,
					trouble(error, () => openLetter(id)),
				);
		}
	}

	/** @param {string[]} ids */
	async function send(ids) {
		const said = [
			"Every stage, sink and pipeline that reads the topic gets them: also a sink that has such a record.",
			again.checked
				? "What was sent before is sent once more."
				: "What was sent before is not sent again.",
		];
		if (!(await confirmed(`Send ${count(ids.length, "record")} again?`, said, "Send"))) return;
		replay.disabled = true;
		try {
			const done = await post(`${path}/replay`, { ids, again: again.checked });
			const sent = `${count(done.replayed, "record")} sent again${done.already ? `, ${done.already} had been sent before` : ""}. `;
			const link = h("a", { href: toToken(done.token) }, "Follow their token");
			if (!element.isConnected) return notice(`Of ${name}: ${sent}`, link);
			fill(told, h("p", {}, sent, link));
			told.scrollIntoView({ block: "nearest" });
		} catch (error) {
			if (element.isConnected) fill(told, trouble(error));
			else notice(`Dead letters of ${name}: `, trouble(error));
		} finally {
			showChosen();
		}
	}

	async function begin() {
		await live.look();
		showChosen();
		const detail = await ask(pipelinePath(name), { signal: abort.signal }).catch(() => null);
		stage.append(
			...(detail?.stages ?? []).map((/** @type {any} */ each) => h("option", {}, each.name)),
		);
		if (abort.signal.aborted) return;
		stage.value = query.get("stage") ?? "";
		if (turn === 0) await load();
		const id = query.get("id");
		if (id && opening === 0 && !abort.signal.aborted) await openLetter(id);
	}

	void begin();
	return { element, title: `Dead letters of ${name}`, close: () => abort.abort() };
}
