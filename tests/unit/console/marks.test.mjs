import assert from "node:assert/strict";
import { test } from "node:test";

import { see, since } from "../console/marks.js";

const LOOK_MS = 2_000;
const doubt = ({ at, before }) => at - before;

test("what was there when the page was opened may be older", () => {
  const marks = [];
  see(marks, 1_000, 5);
  see(marks, 3_000, 5);
  assert.equal(doubt(since(marks, 4)), Infinity);
  assert.equal(since(marks, 5), null);
});

test("a record that is written after a long silence is as old as it was seen", () => {
  const marks = [];
  for (let at = 0; at <= 60_000; at += LOOK_MS) see(marks, at, 5);
  see(marks, 62_000, 6);
  see(marks, 64_000, 6);
  const { at, before } = since(marks, 5);
  assert.deepEqual([at, before], [62_000, 60_000]);
});

test("while nobody looked, a record may be older than it was seen", () => {
  const marks = [];
  see(marks, 0, 5);
  see(marks, 60_000, 6);
  assert.equal(doubt(since(marks, 5)), 60_000);
});

test("marks that are thinned out stay few and true", () => {
  const marks = [];
  for (let look = 0; look <= 3_600; look++) see(marks, look * LOOK_MS, look);
  assert.ok(marks.length <= 32, `${marks.length}`);
  for (let arrived = 0; arrived < 3_600; arrived++) {
    const written = (arrived + 1) * LOOK_MS; // seen then, and not a look before
    const { at, before } = since(marks, arrived);
    assert.ok(before < written && written <= at, `${arrived}: ${before} ${written} ${at}`);
  }
  assert.equal(doubt(since(marks, 3_599)), LOOK_MS);
});
