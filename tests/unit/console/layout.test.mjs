import assert from "node:assert/strict";
import { test } from "node:test";

import { layout } from "../console/layout.js";

const SIZES = { width: 100, height: 60, gapX: 50, gapY: 20 };

const graph = (...edges) => {
  const pairs = edges.map((each) => each.split(">"));
  const ids = [...new Set(pairs.flat())];
  return layout(ids.map((id) => ({ id })), pairs.map(([from, to]) => ({ from, to })), SIZES);
};

test("a line goes from left to right, straight", () => {
  const { nodes, edges, width, height } = graph("in>stage", "stage>sink");
  assert.deepEqual([...nodes.values()].map((each) => each.x), [0, 150, 300]);
  assert.equal(new Set([...nodes.values()].map((each) => each.y)).size, 1);
  assert.deepEqual([width, height], [400, 60]);
  assert.deepEqual(edges[0].points, [{ x: 100, y: 30 }, { x: 150, y: 30 }]);
});

test("what reads several stands behind the last of them, and lines go around what is between", () => {
  const { nodes, edges, crossings } = graph("a>b", "b>c", "c>d", "a>d");
  assert.equal(nodes.get("d").x, 450);
  const far = edges.find((each) => each.from === "a" && each.to === "d");
  assert.equal(far.points.length, 6);
  for (const point of far.points.slice(1, -1)) {
    for (const id of ["b", "c"]) {
      const box = nodes.get(id);
      const inside = point.x >= box.x && point.x <= box.x + 100 && point.y > box.y && point.y < box.y + 60;
      assert.ok(!inside, `${JSON.stringify(point)} lies in ${id}`);
    }
  }
  assert.equal(crossings, 0);
});

test("crossings that can be avoided are", () => {
  assert.equal(graph("a>y", "b>x", "x>p", "y>q").crossings, 0);
  assert.equal(graph("a>x", "a>y", "b>y", "b>z", "c>z", "c>x").crossings, 2, "a ring of six has no less");
});

test("nothing overlaps, with 64 stages", () => {
  const edges = Array.from({ length: 64 }, (_, i) => [`in>s${i}`, `s${i}>t${i}`, ...(i % 7 === 0 && i ? [`t${i - 1}>s${i}`] : [])]).flat();
  const begun = performance.now();
  const { nodes } = graph(...edges);
  assert.ok(performance.now() - begun < 5_000);
  const boxes = [...nodes.values()];
  for (const [i, one] of boxes.entries()) {
    assert.ok(one.y >= 0);
    for (const other of boxes.slice(i + 1)) {
      assert.ok(one.x !== other.x || Math.abs(one.y - other.y) >= 60, "two nodes overlap");
    }
  }
});

test("what leads back, to itself or to nothing hangs nothing up", () => {
  const found = graph("a>b", "b>c", "c>a", "b>b", "b>gone");
  assert.equal(found.nodes.size, 4);
  assert.deepEqual(layout([], [], SIZES).nodes.size, 0);
  assert.equal(layout([{ id: "a" }], [{ from: "a", to: "nothing" }], SIZES).edges.length, 0);
});
