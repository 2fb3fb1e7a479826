import assert from "node:assert/strict";
import { test } from "node:test";

import { waysOf } from "../console/actions.js";
import { inEachSink } from "../console/batches.js";
import { sentenceOf, whyOf as whyNow } from "../console/health.js";
import { Pages } from "../console/pages.js";
import { fitsPhase } from "../console/phases.js";
import { whyOf } from "../console/runs.js";
import { tagsIn } from "../console/tags.js";
import { places, toneOfEnd } from "../console/words.js";

/** As an answer has it, oldest first. */
function page(ids, cursor = null, gap = null) {
  return { items: ids.map((id) => ({ id })), next_cursor: cursor, gap };
}

function shown(pages) {
  return pages.items.map((each) => each.id).join("");
}

test("a list goes back page by page, the newest first", () => {
  const pages = new Pages();
  pages.renew(page(["e", "f"], "before e"));
  pages.extend(page(["c", "d"], "before c"));
  assert.deepEqual([shown(pages), pages.cursor], ["fedc", "before c"]);
  pages.extend(page(["c", "b"], null, "expired"));
  assert.deepEqual([shown(pages), pages.cursor, pages.cut], ["fedcb", null, true]);
});

test("what is new comes on top, and older items stay only if somebody asked for them", () => {
  const pages = new Pages();
  pages.renew(page(["a", "b"], "before a"));
  pages.renew(page(["b", "c"], "before b"));
  assert.deepEqual([shown(pages), pages.cursor], ["cb", "before b"]);
  pages.extend(page(["a"]));
  pages.renew(page(["c", "d"], "before c"));
  assert.deepEqual([shown(pages), pages.cursor], ["dcba", null]);
});

test("a list has no hole: what the newest page does not reach is forgotten", () => {
  const pages = new Pages();
  pages.renew(page(["b"], "before b"));
  pages.extend(page(["a"]));
  pages.renew(page(["y", "z"], "before y"));
  assert.deepEqual([shown(pages), pages.cursor], ["zy", "before y"]);
  pages.renew(page(["x", "y"], "before x"));
  assert.equal(shown(pages), "zyx", "a process that knows less takes nothing away");
  pages.renew(page([], "further back"));
  assert.equal(shown(pages), "zyx", "a search that is not over says nothing");
  pages.renew(page([]));
  assert.equal(shown(pages), "", "another pipeline has the name now");
});

test("a run says why it has ended, and what went wrong apart from that", () => {
  const run = { end: "stopped", reason: "to be stopped", ended_by: "ada", attempt: 0, error: null };
  assert.deepEqual(whyOf(run), { said: "to be stopped, by ada", error: "" });
  assert.equal(whyOf({ ...run, end: "finished", reason: "all is read", ended_by: "stage_runner" }).said, "all is read");
  assert.match(whyOf({ ...run, end: "taken_over", reason: null, ended_by: null }).said, /^another runner has the pipeline now/);
  const error = { message: "no such table", hint: "create it" };
  const failed = whyOf({ ...run, end: "failed", reason: error.message, ended_by: "stage_runner", attempt: 2, error });
  assert.deepEqual(failed, { said: "after 2 that failed", error: "no such table — create it" });
  assert.deepEqual(whyOf({ ...run, end: null, reason: null, ended_by: null }), { said: "", error: "" });
  assert.deepEqual(["finished", "stopped", "crashed", "of tomorrow"].map(toneOfEnd), ["good", "off", "bad", "doubt"]);
});

test("a batch is a row for each of its sinks", () => {
  const ranges = [{ topic: "orders", partition: 0, start: 4, end: 9 }];
  const sinks = [
    { name: "lake", rows: 5, committed_at: "1970-01-01T00:00:03Z", version: { iceberg_snapshot_id: "7" } },
    { name: "out", rows: 4, committed_at: null, version: null },
  ];
  const found = inEachSink({ batch: 12, started_at: "1970-01-01T00:00:01Z", ranges, ranges_count: 9, sinks }, "load");
  assert.deepEqual(found.map((each) => [each.sink, each.rows, each.startedAt, each.committedAt]), [["lake", 5, 1_000, 3_000], ["out", 4, 1_000, null]]);
  assert.deepEqual(found.map((each) => each.records), Array(2).fill("orders 0: 4–8 and 8 partitions more"));
  assert.equal(places(ranges), "orders 0: 4–8");
});

test("what is degraded is said once, with its stage", () => {
  const condition = { kind: "degraded", stage: "load", cause: "no_commit", since: "1970-01-01T00:00:01Z", hint: "look" };
  const cause = "stage load: records wait, and five times the usual pause had no commit";
  assert.equal(sentenceOf(condition), cause);
  assert.equal(sentenceOf({ ...condition, stage: null, cause: "of_tomorrow" }), "of tomorrow");
  assert.equal(whyNow({ stuck: { cause, hint: "look" }, conditions: [condition] }), "");
  assert.equal(whyNow({ stuck: { cause: "it is paused", hint: "resume" }, conditions: [condition] }), "it is paused — resume");
  assert.equal(whyNow({ stuck: null, conditions: [] }), "");
});

test("other ways are shown where they are allowed, and only stronger ones while it stops", () => {
  const words = (phase, allowed, going) => waysOf({ phase, allowed_actions: allowed }, going).map((each) => each.action.word);
  const all = ["Drain, then stop", "Stop at once", "Restart at once"];
  assert.deepEqual(words("Running", ["stop", "restart"]), all);
  assert.deepEqual(words("Running", ["restart"]), ["Restart at once"]);
  assert.deepEqual(words("Running", []), []);
  assert.deepEqual(words("Failed", ["stop", "restart"]), []);
  for (const phase of ["Draining", "CheckpointStopping", "Stopping", "Rescaling"]) {
    assert.deepEqual(words(phase, ["stop"]), ["Stop at once"]);
  }
  assert.deepEqual(words("Restarting", ["stop", "restart"]), ["Stop at once", "Restart at once"]);
  const [drain, force] = waysOf({ phase: "Running", allowed_actions: ["stop", "restart"] }).map((each) => each.action);
  assert.deepEqual(words("Running", ["stop", "restart"], drain), ["Stop at once"]);
  assert.deepEqual(words("Running", ["stop", "restart"], force), []);
});

test("pipelines are chosen by phase, by trouble and by tags", () => {
  const stuck = { cause: "x", hint: null };
  const all = [{ phase: "Running", stuck: null }, { phase: "Running", stuck }, { phase: "Paused", stuck }, { phase: "Failed", stuck }];
  const fitting = (wanted) => all.map((each) => (fitsPhase(each, wanted) ? "+" : "-")).join("");
  assert.deepEqual(["", "Running", "trouble", "Stopped"].map(fitting), ["++++", "++--", "-+-+", "----"]);
  assert.deepEqual(tagsIn(" shop, eu,,"), ["shop", "eu"]);
  assert.deepEqual(tagsIn(" "), []);
});
