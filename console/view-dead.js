/** The dead letters of a pipeline: by cause, a list with filters, one of them whole, and replaying them. */

import { ask, pipelinePath, post, query } from "./api.js";
import { causeCells, groupLine, progressLine, resentLines, whatReplaysDo } from "./dead-parts.js";
import { confirmed, fill, h, notice, say, set, time, trouble, wide } from "./dom.js";
import { groupKey, groupsOf, groupTitle, whyNotSent } from "./groups.js";
import { letterPanel } from "./letter-panel.js";
import { live } from "./live.js";
import { DEATHS } from "./meanings.js";
import { resend } from "./resending.js";
import { toDead, toPipeline } from "./router.js";
import { count, number } from "./words.js";

const PAGE = 100; // rows of the table
const READ_AT_ONCE = 1_000;
const LOOKED_AT_MAX = 10_000; // letters, before somebody asks for more
const GROUPS_SHOWN = 20;
const COLUMNS = ["", "Since", "Record", "Stage", "Reason", "Message", "Value"];

/**
 * @param {string} name
 * @param {URLSearchParams} asked
 * @returns {View}
 */
export function deadView(name, asked) {
	const path = `${pipelinePath(name)}/dead-letters`;
	const reason = h(
		"select",
		{ "aria-label": "Reason", onchange: filter },
		h("option", { value: "" }, "any reason"),
		...Object.keys(DEATHS).map((each) => h("option", { value: each }, each)),
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
		{ type: "button", onclick: () => void send([...chosen], []) },
		"Replay",
	);
	const every = h("input", {
		type: "checkbox",
		"aria-label": "Choose all that are shown",
		onchange: chooseAll,
	});
	const statusLine = h("div", { role: "status", "aria-live": "polite" });
	const groups = h("ul", { class: "groups", "aria-label": "by cause" });
	const body = h("tbody", {});
	const more = h("button", { type: "button", onclick: showMore }, "Show more");
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
				h("label", {}, again, " also what was replayed before"),
			),
		),
		statusLine,
		panel,
		groups,
		wide(
			"dead letters",
			h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...headings)), body),
		),
		h("div", { class: "actions" }, more),
	);
	const abort = new AbortController();
	/** @type {Set<string>} */
	const chosen = new Set();
	/** @type {any[]} newest first: those that were looked at, of which some are shown */
	let letters = [];
	/** @type {string | null} */
	let cursor = null;
	let only = ""; // the group that is shown
	let room = PAGE;
	let sending = false;
	let turn = 0;
	let opening = 0;
	reason.value = asked.get("reason") ?? "";

	function wanted() {
		const from = since.value && new Date(since.value).toISOString();
		const limit = letters.length ? READ_AT_ONCE : PAGE;
		return query({ limit, reason: reason.value, stage: stage.value, since: from, cursor });
	}

	function filter() {
		const kept = query({ reason: reason.value, stage: stage.value });
		history.replaceState(null, "", `${toDead(name)}${kept && `?${kept}`}`);
		cursor = null;
		letters = [];
		fill(statusLine);
		show("");
		void load();
	}

	/** Page by page; one may be empty, and still not the last: then there was much to look through. */
	async function load() {
		const mine = ++turn;
		const enough = letters.length + LOOKED_AT_MAX;
		try {
			do {
				const page = await ask(`${path}?${wanted()}`, { signal: abort.signal });
				if (mine !== turn) return;
				letters.push(...page.items);
				cursor = page.next_cursor;
				draw();
				if (!letters.length) say(counted, cursor ? "looking further back…" : "");
			} while (cursor && letters.length < enough);
			const nothing = "No dead letters. What a topic does not keep any more is not shown.";
			if (!letters.length) fill(statusLine, h("p", { class: "quiet" }, nothing));
		} catch (error) {
			if (!abort.signal.aborted && mine === turn) fill(statusLine, trouble(error, load));
		}
	}

	function showMore() {
		room += PAGE;
		if (room > letters.length && cursor) void load();
		draw();
	}

	/** @param {string} key of a group; empty: all */
	function show(key) {
		only = key;
		room = PAGE;
		chosen.clear();
		every.checked = false;
		fill(body);
		draw();
	}

	function draw() {
		const fitting = only ? letters.filter((each) => groupKey(each) === only) : letters;
		body.append(...fitting.slice(body.childElementCount, room).map(row));
		const shown = body.childElementCount;
		const found = `${number(fitting.length)}${cursor ? " or more" : ""}`;
		say(counted, shown ? `${number(shown)} of ${found} shown` : "");
		set(more, "hidden", shown === fitting.length && !cursor);
		drawGroups();
		showChosen();
	}

	function drawGroups() {
		const found = groupsOf(letters);
		const left = found.length - GROUPS_SHOWN;
		fill(
			groups,
			...found.slice(0, GROUPS_SHOWN).map(groupRow),
			left > 0 ? h("li", { class: "quiet" }, `and ${count(left, "cause")} more`) : null,
		);
	}

	/** @param {Group} group */
	function groupRow(group) {
		const shown = only === group.key;
		const not = whyNotSent(group);
		const may = live.may("write");
		const pick = h(
			"button",
			{ type: "button", class: "small", onclick: () => show(shown ? "" : group.key) },
			shown ? "Show all" : "Show these",
		);
		const all = h(
			"button",
			{ type: "button", class: "small", disabled: sending, onclick: () => void sendGroup(group) },
			"Replay this group",
		);
		const line = groupLine(group, cursor !== null, pick, may && !not ? all : null);
		set(line, "aria-current", shown ? "true" : null);
		if (may && not) line.append(h("div", { class: "quiet" }, not));
		return line;
	}

	/** @param {Group} group */
	function sendGroup(group) {
		const title = groupTitle(group, cursor !== null);
		const further = "There may be more of them further back, which are not sent.";
		const ids = group.letters.map((each) => each.id);
		return send(ids, [`Only these: ${title}.`, ...(cursor ? [further] : [])]);
	}

	/** @param {any} letter */
	function row(letter) {
		const choose = h("input", {
			type: "checkbox",
			"aria-label": `Choose ${letter.id}`,
			"data-id": letter.id,
			disabled: Boolean(letter.not_replayable),
			title: letter.not_replayable,
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
			...causeCells(letter),
		);
	}

	function chooseAll() {
		for (const each of /** @type {NodeListOf<HTMLInputElement>} */ (
			body.querySelectorAll("input[data-id]:enabled")
		)) {
			each.checked = every.checked;
			const id = each.getAttribute("data-id") ?? "";
			if (every.checked) chosen.add(id);
			else chosen.delete(id);
		}
		showChosen();
	}

	function showChosen() {
		say(replay, chosen.size ? `Replay ${count(chosen.size, "letter")}` : "Replay");
		replay.disabled = chosen.size === 0 || sending;
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
			const replayIt = (/** @type {Edited} */ edited) => void send([id], [], edited);
			fill(
				panel,
				letterPanel(letter, replayIt, () => fill(panel)),
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

	/**
	 * @param {string[]} ids
	 * @param {string[]} which of them these are
	 * @param {Edited} edited
	 */
	async function send(ids, which, edited = null) {
		const said = [...which, ...whatReplaysDo(again.checked)];
		const what = edited ? "Replay the edited record?" : `Replay ${count(ids.length, "letter")}?`;
		if (!(await confirmed(what, said, "Replay"))) return;
		sending = true;
		draw();
		const progress = (/** @type {Resent} */ sent) => fill(statusLine, progressLine(sent, ids.length));
		let yes = false;
		const request = (/** @type {readonly string[]} */ each) =>
			post(`${path}/replay`, { ids: each, again: again.checked, yes, ...(edited && { edited }) });
		const some = async (/** @type {readonly string[]} */ each) => {
			try {
				return await request(each);
			} catch (error) {
				const { type, detail } = /** @type {any} */ (error).body ?? {};
				if (!String(type).endsWith("replay_not_confirmed")) throw error;
				yes = await confirmed("Replay them all the same?", [detail], "Replay");
				if (!yes) throw error;
				return await request(each);
			}
		};
		const outcome = await resentLines(await resend(ids, some, progress));
		sending = false;
		if (!element.isConnected) return notice(`Dead letters of ${name}: `, ...outcome);
		fill(statusLine, ...outcome);
		statusLine.scrollIntoView({ block: "nearest" });
		draw();
	}

	async function begin() {
		await live.look();
		showChosen();
		const detail = await ask(pipelinePath(name), { signal: abort.signal }).catch(() => null);
		const stages = detail?.stages ?? [];
		stage.append(...stages.map((/** @type {any} */ each) => h("option", {}, each.name)));
		if (abort.signal.aborted) return;
		stage.value = asked.get("stage") ?? "";
		if (turn === 0) await load();
		const id = asked.get("id");
		if (id && opening === 0 && !abort.signal.aborted) await openLetter(id);
	}

	void begin();
	return { element, title: `Dead letters of ${name}`, close: () => abort.abort() };
}
