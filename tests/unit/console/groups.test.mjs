import assert from "node:assert/strict";
import { test } from "node:test";

import { groupPlace, groupsOf, groupTitle, whyNotSent } from "../console/groups.js";
import { AT_ONCE, resend } from "../console/resending.js";

const DIVIDED = "the query ends at a value: Division by zero. Use `try_divide` to tolerate a divisor of 0.";
let next = 0;

function letter(message, more = {}) {
  const source = { topic: "orders.in", partition: 0, offset: next };
  return { id: `L${next++}`, stage: "big", sink: null, reason: "failed", rule: null, message, source, ...more };
}

test("letters of one cause are one group, the largest first", () => {
  const bad = [letter("amount: 'x' is no INT", { reason: "malformed" }), letter("amount: 'why' is no INT", { reason: "malformed" })];
  const groups = groupsOf([bad[0], letter(DIVIDED), letter(DIVIDED), bad[1], letter(DIVIDED)]);
  assert.deepEqual(groups.map((each) => groupTitle(each, false)), ["3 × Division by zero", "2 × amount: … is no INT"]);
  assert.deepEqual(groups[1].letters.map((each) => each.id), bad.map((each) => each.id));
  assert.equal(groupTitle(groups[0], true), "3 or more × Division by zero");
  assert.equal(groupPlace(groups[0]), "failed in stage big, from orders.in");
});

test("each step has a group of its own, which names it", () => {
  const steps = ["net", "step-1", "step-2"];
  const letters = steps.flatMap((step) => [7, 12].map((most) => letter(`step ${step} ends at a value: ${most} is too much. Use 9.`)));
  const groups = groupsOf(letters);
  assert.deepEqual(groups.map((each) => groupTitle(each, false)), Array(3).fill("2 × … is too much"));
  assert.deepEqual(groups.map(groupPlace), steps.map((step) => `failed in stage big, step ${step}, from orders.in`));
  assert.deepEqual(groups.map((each) => each.letters), [letters.slice(0, 2), letters.slice(2, 4), letters.slice(4)]);
});

test("another stage, sink, rule or topic is another group", () => {
  const apart = [{}, { stage: "small" }, { sink: "lake" }, { reason: "refused" }, { rule: "positive" }, { source: { topic: "inner" } }];
  assert.equal(groupsOf(apart.map((more) => letter("no", more))).length, apart.length);
  assert.equal(groupsOf([letter("7 of 9"), letter("12 of 9.5")])[0].title, "… of …");
});

test("a group of which no letter can be replayed says why", () => {
  const why = (...reasons) => whyNotSent(groupsOf(reasons.map((reason) => letter("no", { not_replayable: reason })))[0]);
  assert.equal(why(null), null);
  assert.equal(why("its stage is gone", null), null);
  assert.equal(why("its stage is gone", "its sink is gone"), "None can be replayed: its stage is gone.");
});

const ids = (number) => Array.from({ length: number }, (_, i) => `L${i}`);
const refusal = (status, rejected) => Object.assign(new Error("no"), { status, body: { rejected } });

test("many are sent in requests of a thousand, each letter once", async () => {
  const asked = [];
  const seen = [];
  const post = async (some) => {
    asked.push(some);
    return { replayed: some.length - 1, already: 1, token: `wb1.${asked.length}` };
  };
  const sent = await resend(ids(2_500), post, ({ replayed }) => seen.push(replayed));
  assert.deepEqual(asked.map((each) => each.length), [AT_ONCE, AT_ONCE, 500]);
  assert.deepEqual(asked.flat(), ids(2_500));
  assert.deepEqual([sent.replayed, sent.already, sent.error], [2_497, 3, null]);
  assert.deepEqual(sent.tokens, ["wb1.1", "wb1.2", "wb1.3"]);
  assert.deepEqual(seen, [999, 1_998, 2_497]);
});

test("what cannot be sent is left out, and what is too large is sent in halves", async () => {
  const done = [];
  const post = async (some) => {
    if (some.includes("L1")) throw refusal(410, [{ index: some.indexOf("L1"), reason: "retention" }]);
    if (some.length > 2) throw refusal(413);
    done.push(...some);
    return { replayed: some.length, already: 0, token: "wb1.x" };
  };
  const sent = await resend(ids(6), post, () => {});
  assert.deepEqual(done, ["L0", "L2", "L3", "L4", "L5"]);
  assert.deepEqual([...sent.leftOut], [["L1", "retention"]]);
  assert.equal(sent.replayed, 5);
});

test("an error ends it, and what was sent before is not forgotten", async () => {
  let turn = 0;
  const post = async (some) => {
    if (turn++) throw refusal(503);
    return { replayed: some.length, already: 0, token: "wb1.x" };
  };
  const sent = await resend(ids(3_000), post, () => {});
  assert.deepEqual([sent.replayed, sent.tokens, turn], [1_000, ["wb1.x"], 2]);
  assert.equal(sent.error.status, 503);
  const single = await resend(["L0"], async () => { throw refusal(413); }, () => {});
  assert.equal(single.error.status, 413);
});
