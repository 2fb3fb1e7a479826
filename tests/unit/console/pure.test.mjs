import assert from "node:assert/strict";
import { test } from "node:test";

import { lossesOf, possible } from "../console/actions.js";
import { hex } from "../console/letter.js";
import { nameOf, readsOf, recordOf } from "../console/samples.js";
import { points } from "../console/sparkline.js";
import { partOf } from "../console/stage.js";
import { EventReader } from "../console/stream.js";
import { diff } from "../console/diff.js";
import { count, duration, inUtc, inZone, places, rate, short, spelled, toneOfPhase } from "../console/words.js";

test("events are read wherever the stream is cut", () => {
  const text = ": ping\n\nid: 1\n\nid: 2\nevent: outcome\ndata: {\"a\":\ndata: 1}\n\r\n\r\nid: 3\r\nevent: x\r\ndata: 2\r\n\r\n";
  for (let size = 1; size < text.length; size++) {
    const reader = new EventReader();
    const told = [];
    for (let at = 0; at < text.length; at += size) told.push(...reader.read(text.slice(at, at + size)));
    assert.deepEqual(told, [{ name: "outcome", data: { a: 1 }, id: "2" }, { name: "x", data: 2, id: "3" }]);
    assert.equal(reader.id, "3");
  }
});

test("a deletion says how much is lost, as far as that is known", () => {
  const lost = (behind) => lossesOf(behind)[0].split(" ends as lost: ")[0];
  assert.equal(lost(1), "What it has not processed, about 1 record,");
  assert.equal(lost(1_200), "What it has not processed, about 1,200 records,");
  assert.equal(lost(0), "Nothing is unfinished now; what comes meanwhile");
  assert.equal(lost(null), "What it has not processed");
  assert.match(lossesOf(0)[1], /Topics and tables stay/);
});

test("numbers and times are short", () => {
  assert.deepEqual([999, 61_000, 3_700_000, 90_000_000, -5].map(duration), ["999 ms", "1 min 1 s", "1 h 1 min", "1 d 1 h", "0 ms"]);
  assert.deepEqual([null, 0, 0.25, 12.4, 123_456].map(rate), ["–", "0/s", "0.3/s", "12/s", "123.5K/s"]);
  assert.deepEqual([count(1, "record"), count(1_234, "record"), short(9_999)], ["1 record", "1,234 records", "9,999"]);
  assert.equal(inUtc(new Date(0)), "1970-01-01 00:00:00.000 UTC");
  assert.equal(spelled("in_progress"), "in progress");
});

test("a time says its day unless it is today by the clock that it is of", () => {
  const at = new Date(2026, 10, 21, 23, 59, 58, 7);
  assert.equal(inZone(at, false, new Date(2026, 10, 21, 1)), "23:59:58");
  assert.equal(inZone(at, true, new Date(2026, 10, 22, 1)), "2026-11-21 23:59:58.007");
});

test("a pipeline that runs and is stuck is as bad as one that failed", () => {
  assert.deepEqual([toneOfPhase("Running"), toneOfPhase("Running", true), toneOfPhase("Failed"), toneOfPhase("Of tomorrow")], ["good", "bad", "bad", "doubt"]);
});

test("only what makes sense is offered", () => {
  assert.deepEqual(possible({ allowed_actions: ["apply", "restart", "pause", "stop", "delete"] }), ["pause", "stop", "restart", "delete"]);
  assert.deepEqual(possible({ allowed_actions: [] }), []);
});

test("a record is made of the columns of an input", () => {
  const columns = [["id", "BIGINT"], ["name", "string"], ["price", "DECIMAL(10,2)"], ["tags", "ARRAY<STRING>"], ["at", "TIMESTAMP"]];
  const made = recordOf(columns.map(([name, type]) => ({ name, type, required: false })));
  assert.equal(made, '{ "id": 1, "name": "ada", "price": 12.5, "tags": [], "at": "2026-11-21T09:00:00Z" }');
  assert.equal(recordOf([]), "{}");
});

test("a manifest says its name, in YAML or JSON", () => {
  assert.equal(nameOf("inputs: [{name: a}]\nname: 'orders-1' # own\n"), "orders-1");
  assert.equal(nameOf('{"inputs": [{"name": "a"}], "name": "orders"}'), "orders");
  assert.equal(nameOf('{\n"name" : "orders"}'), "orders");
  assert.equal(nameOf("version: 1"), "");
});

test("a version says how it is read, with all of its digits", () => {
  const lines = readsOf({ iceberg_snapshot_id: "6150272777574668285" }, "lakehouse.raw.orders").map((each) => each.text);
  assert.deepEqual(lines, [
    "6150272777574668285",
    'load_catalog("lakehouse").load_table("raw.orders").scan(snapshot_id=6150272777574668285)',
    'spark.read.option("snapshot-id", 6150272777574668285).table("lakehouse.raw.orders")',
    "SELECT * FROM lakehouse.raw.orders VERSION AS OF 6150272777574668285",
  ]);
  assert.deepEqual(readsOf({ postgres_lsn: "0/16B3748" }, "t")[0].text, "SELECT pg_last_wal_replay_lsn() >= '0/16B3748'::pg_lsn");
  assert.deepEqual(readsOf(null, "t"), []);
  assert.deepEqual(readsOf({ iceberg_snapshot_id: "1" }, null), [{ label: "Snapshot", text: "1" }]);
});

const MANIFEST = `version: 1
name: orders
stages:
  - name: load
    inputs: [a]
    sinks:
      - {name: enrich, kafka: {topic: x}}

  - {name: enrich, inputs: [b]}   # the other
  - inputs: [c]
    name: 'last-one'
deadLetter: {}
`;

test("a stage is shown as it was written", () => {
  assert.equal(partOf(MANIFEST, "load").split("\n").length, 4);
  assert.equal(partOf(MANIFEST, "enrich"), "  - {name: enrich, inputs: [b]}   # the other");
  assert.equal(partOf(MANIFEST, "last-one"), "  - inputs: [c]\n    name: 'last-one'");
  assert.equal(partOf(MANIFEST, "none"), MANIFEST);
});

test("bytes are shown as hex, and only the first of many", () => {
  assert.equal(hex(btoa("ab\x00")), `000000  ${"61 62 00".padEnd(47)}  ab.`);
  assert.match(hex(btoa("x".repeat(5_000))), /… 904 bytes more$/);
});

test("a line of the last ten minutes has now at its right edge", () => {
  const dots = [{ at: 0, value: 9 }, { at: 300_000, value: 5 }, { at: 600_001, value: 10 }];
  assert.equal(points(dots, 600_001, 100, 20), "50.0,10.0 100.0,1.0");
});

test("where records stand is said with the last one, of a few partitions", () => {
  const at = (partition) => ({ topic: "orders", partition, start: 4, end: 9 });
  assert.equal(places([]), "");
  assert.equal(places([at(0)]), "orders 0: 4–8");
  assert.equal(
    places([0, 1, 2, 3, 4].map(at)),
    "orders 0: 4–8, orders 1: 4–8, orders 2: 4–8 and 2 partitions more",
  );
});

test("what has changed in a text is told line by line, the rest as it is", () => {
  const said = (before, after) => diff(before, after).map((each) => each.sign + each.text);
  assert.deepEqual(said("a\nb", "a\nb"), [" a", " b"]);
  assert.deepEqual(said("a\nb\nc\nd", "a\nB\nc\nx\nd"), [" a", "-b", "+B", " c", "+x", " d"]);
  assert.deepEqual(said("a\nb\nb\nc", "a\nb\nc"), [" a", " b", "-b", " c"]);
  assert.deepEqual(said("", "a"), ["-", "+a"]);
});
