import assert from "node:assert/strict";
import { test } from "node:test";

import { bars } from "../console/bars.js";
import { deadHeading, deadPlace, leadOf, sinkSaid, stageSaid } from "../console/outcome.js";

const AT = "2026-11-21T09:00:00.000Z";
const DONE = "2026-11-21T09:00:09.000Z";
const SINK = {
  name: "lake", state: "committed", batch_rows: 1_000, read_at: "2026-11-21T09:00:08.000Z",
  committed_at: DONE, behind: 0, version: null,
};
const DEAD = { topic: "orders.in", partition: 0, offset: 4, stage: "load", sink: null, reason: "failed", message: "", exact: true };
const LEFT_OUT = { rule: "orders.positive", stage: "load", up_to: 3 };

function answer(outcome, more = {}, sink = {}) {
  const stages = [{ stage: "load", state: "done", batch: 3, committed_at: DONE, blocked_by: null, sinks: [{ ...SINK, ...sink }] }];
  const found = { outcome, accepted: 1_004, issued_at: AT, completed_at: null, stages, dead: [], dead_count: 0, dropped: [], lost: [] };
  return { ...found, ...more };
}

const lead = (outcome) => leadOf(outcome, "at nine", "5 s").join("");

function sink(outcome, number = 0) {
  const [stage] = outcome.stages;
  const begun = Date.parse(AT);
  const { work } = bars(stage.sinks[number], stage, begun, begun + 10_000);
  return sinkSaid({ sink: stage.sinks[number], stage, part: outcome, outcome }, work, "at nine").join("");
}

test("of a token of which nothing died it is said that all is visible", () => {
  const complete = answer("complete", { completed_at: DONE });
  assert.equal(lead(complete), "All of it is committed in every sink at the end of the pipeline. 1,004 records accepted at nine, all visible after 9.0 s.");
  assert.equal(sink(complete), "visible at nine after 9.0 s, 1.0 s of it in the batch of 1,000 rows");
});

test("of a token of which some died it is never said that all is visible", () => {
  const dead = answer("dead_lettered", { completed_at: DONE, dead: [DEAD, DEAD, DEAD, DEAD], dead_count: 4 });
  assert.equal(lead(dead), "None of it is missing, and some of it is in a dead-letter topic. 1,004 records accepted at nine, 4 dead, the rest visible after 9.0 s.");
  assert.match(sink(dead), /^the rest visible at nine after 9.0 s/);
  assert.match(lead({ ...dead, completed_at: null }), / accepted at nine, 4 dead\.$/);
});

test("of a token of which all died no rest is visible", () => {
  const dead = answer("dead_lettered", { accepted: 1, completed_at: DONE, dead: [DEAD], dead_count: 1 });
  assert.match(lead(dead), /1 record accepted at nine, 1 dead\.$/);
  assert.equal(sink(dead), "the sink has all of it that did not die, and its readers can see it");
});

test("nor of one of which some was dropped, is lost or not known", () => {
  const dropped = { dropped: [LEFT_OUT] };
  assert.match(lead(answer("complete", { ...dropped, completed_at: DONE })), /nine, up to 3 dropped, the rest visible after 9.0 s\.$/);
  assert.match(sink(answer("complete", dropped)), /^the rest visible/);
  assert.equal(lead(answer("lost", { dead: [DEAD], dead_count: 1 })), "Some of it will never be processed. 1,004 records accepted at nine, 1 dead.");
  assert.equal(lead(answer("unknown", { accepted: null, reason: "redis_away" })), "It cannot be known now. Records accepted at nine. Reason: Redis does not answer.");
  assert.equal(lead(answer("in_progress", { dead: [DEAD], dead_count: 1 })), "Not all of it has arrived. 1,004 records accepted at nine, 5 s ago, 1 dead.");
  assert.match(lead(answer("of_tomorrow", { reason: "not_yet" })), /^Of tomorrow\. .* Reason: not yet\.$/);
});

test("what may have reached a sink without a promise is not called visible", () => {
  const perhaps = answer("complete", { completed_at: DONE }, { guarantee: "none" });
  assert.match(lead(perhaps), /accepted at nine\.$/);
  assert.match(sink(perhaps), /^written at nine after 9.0 s, .*, each row perhaps$/);
  assert.match(sink(answer("complete", {}, { guarantee: "at_least_once" })), /each row once or more often$/);
});

test("what only one sink refused is missing in no other of its stage", () => {
  const refused = answer("dead_lettered", { dead: [{ ...DEAD, reason: "refused", sink: "lake" }], dead_count: 1 });
  refused.stages[0].sinks.push({ ...SINK, name: "out" });
  assert.match(sink(refused), /^the rest visible/);
  assert.match(sink(refused, 1), /^visible/);
});

test("a number that is not exact says so", () => {
  const range = { ...DEAD, start: 4, end: 9, up_to: 2, exact: false };
  const heading = (part, outcome = {}) => deadHeading({ dead: [], ...part }, outcome);
  assert.equal(heading({ dead: [DEAD], dead_count: 1 }), "Dead letters: 1");
  assert.equal(heading({ dead: [DEAD, range], dead_count: 3 }), "Dead letters: up to 3");
  assert.equal(heading({ dead: [DEAD], dead_count: 2_000 }, { dead_truncated: true }), "Dead letters: up to 2,000");
  assert.equal(heading({ dead: [DEAD], dead_count: 10_000 }, { dead_truncated: true }), "Dead letters: about 10,000");
  assert.equal(deadPlace(range), "up to 2 of orders.in[0] offsets 4 to 8");
});

test("of a sink only that is said which is known of its batch", () => {
  const nothing = { batch_rows: null, read_at: null, committed_at: null };
  const forgotten = answer("complete", {}, { ...nothing, detail: "expired" });
  forgotten.stages[0].committed_at = null;
  assert.equal(sink(forgotten), "it is committed, by a batch too old for its details to be kept");
  const none = answer("complete", {}, nothing);
  none.stages[0].committed_at = null;
  assert.equal(sink(none), "no batch had to bring it");
  assert.equal(sink(answer("complete", {}, { read_at: null })), "visible at nine after 9.0 s");
  assert.equal(sink(answer("lost", {}, { state: "lost" })), "some of it never comes to the sink");
});

test("what is still to come is counted in records only where these are known", () => {
  const waiting = { state: "waiting", behind: 3, committed_at: null };
  assert.equal(sink(answer("in_progress", {}, waiting)), "3 records still to come");
  assert.equal(sink(answer("in_progress", { accepted: null }, waiting)), "up to 3 records still to come");
  assert.match(sink(answer("in_progress", {}, { ...waiting, blocked_by: "batch_running" })), /: a sink has been taking one batch/);
  assert.equal(stageSaid({ stage: "load", state: "blocked", batch: null, blocked_by: "stage_stopped" }), "the pipeline is stopped, or is being stopped");
});
