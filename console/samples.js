/** Texts to begin with: a first manifest, a record that fits an input, lines to read a version with. Pure. */

export const FIRST_MANIFEST = `version: 1
name: first
inputs:
  - name: orders
    kafka: {topic: first.in, partitions: 1}     # made if it does not exist
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2)"
    key: order_id
stages:
  - name: tax
    inputs: [orders]
    steps:
      - {name: taxed, sql: "SELECT *, amount * 0.2 AS tax FROM orders"}
    sinks:
      - {name: out, kafka: {topic: first.out, key: order_id, partitions: 1}}
      # Rows of an Iceberg table, too:
      # - {name: lake, iceberg: {table: raw.first}}
`;

/**
 * The name that a manifest gives itself; empty if it is not found.
 * @param {string} manifest YAML or JSON
 */
export function nameOf(manifest) {
	const line = /^["']?name["']?\s*:\s*["']?([a-z][\w-]*)/m.exec(manifest);
	if (line) return line[1];
	try {
		return String(JSON.parse(manifest).name ?? "");
	} catch {
		return "";
	}
}

/** @type {[RegExp, unknown][]} */
const VALUES = [
	[/^(TINYINT|SMALLINT|INT|INTEGER|BIGINT|LONG)$/, 1],
	[/^(FLOAT|REAL|DOUBLE|DECIMAL|DEC|NUMERIC)/, 12.5],
	[/^BOOLEAN$/, true],
	[/^DATE$/, "2026-11-21"],
	[/^TIMESTAMP_NTZ$/, "2026-11-21T09:00:00"],
	[/^TIMESTAMP/, "2026-11-21T09:00:00Z"],
	[/^BINARY$/, "AQI="],
	[/^ARRAY/, []],
	[/^MAP/, {}],
	[/^STRUCT/, {}],
];

/**
 * A record that the input takes, as far as its columns say.
 * @param {readonly Column[]} columns
 */
export function recordOf(columns) {
	const made = columns.map(({ name, type }) => {
		const found = VALUES.find(([pattern]) => pattern.test(type.trim().toUpperCase()));
		return [name, found ? found[1] : "ada"];
	});
	return JSON.stringify(Object.fromEntries(made), null, 1).replace(/\n\s*/g, " ");
}

/**
 * How the rows of a token are read, by what the sink calls its version.
 * @param {Record<string, string> | null} version
 * @param {string | null} target the table, if it is known
 * @returns {{label: string, text: string}[]}
 */
export function readsOf(version, target) {
	const lines = [];
	const snapshot = version?.iceberg_snapshot_id;
	if (snapshot) lines.push({ label: "Snapshot", text: snapshot });
	if (snapshot && target) {
		const [catalog, ...rest] = target.split(".");
		const table = rest.length > 1 ? rest.join(".") : target;
		lines.push(
			{
				label: "PyIceberg",
				text: `load_catalog(${JSON.stringify(catalog)}).load_table(${JSON.stringify(table)}).scan(snapshot_id=${snapshot})`,
			},
			{
				label: "Spark",
				text: `spark.read.option("snapshot-id", ${snapshot}).table(${JSON.stringify(target)})`,
			},
			{ label: "SQL", text: `SELECT * FROM ${target} VERSION AS OF ${snapshot}` },
		);
	}
	const lsn = version?.postgres_lsn;
	if (lsn)
		lines.push({
			label: "On a standby, true once it is there",
			text: `SELECT pg_last_wal_replay_lsn() >= '${lsn}'::pg_lsn`,
		});
	for (const [name, value] of Object.entries(version ?? {})) {
		if (name !== "iceberg_snapshot_id" && name !== "postgres_lsn")
			lines.push({ label: name.replaceAll("_", " "), text: value });
	}
	return lines;
}
