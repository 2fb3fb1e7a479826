/** What the pages pass around. Only checked: no browser is given this file. */

type Action = { word: string; running: string; method: string; path: string; danger?: boolean };

/** Another way to do an action, with what it does */
type Way = { of: string; action: Action; meaning: string };

type PlacedError = {
  message: string;
  line: number | null;
  column: number | null;
  path: string;
  hint: string;
};

type Child = Node | string | number | null | undefined | false;

type Attributes = Record<
  string,
  string | number | boolean | null | undefined | ((event: any) => unknown)
>;

type GraphNode = { id: string; kind: string };

type GraphEdge = { from: string; to: string };

type Figure = { lines: string[]; tone?: string; dots?: Dot[]; label?: string };

type LayoutNode = { id: string };

type Edge = { from: string; to: string };

type Place = { id: string; layer: number; real: boolean };

type Sizes = { width: number; height: number; gapX: number; gapY: number };

type Point = { x: number; y: number };

type Layout = {
  nodes: Map<string, Point>;
  edges: { from: string; to: string; points: Point[] }[];
  width: number;
  height: number;
  crossings: number;
};

type Stuck = { cause: string; hint: string | null };

type Condition = {
  message: string | null;
  kind: string;
  stage: string | null;
  cause: string;
  since: string;
  hint: string | null;
};

type Summary = {
  name: string;
  uid: string;
  generation: number;
  desired: string;
  phase: string;
  reason: string | null;
  since: string | null;
  allowed_actions: string[];
  conditions: Condition[];
  stuck: Stuck | null;
};

type Reached = { partition: number; end: number; arrived: number };

type Flow = {
  name: string;
  uid: string;
  reason: string | null;
  inputs: { name: string; written: number; arrived: number; partitions: Reached[] }[];
  sinks: { stage: string; name: string; behind: number }[];
  dead: number;
};

type Sample = { at: number; arrived: number };

/**
 * A partition ended there from `at` to `seen`; at `before` it had not even the first of the records
 * that this stands for.
 */
type Mark = { at: number; end: number; seen: number; before: number };

type Batch = {
  stage: string;
  sink: string;
  batch: number;
  records: string;
  rows: number;
  startedAt: number;
  committedAt: number;
  version: Record<string, string>;
};

/** One of an answer of 30 days, in one sink; `committedAt`: null if this was not reported */
type PastBatch = Omit<Batch, "committedAt" | "version"> & {
  committedAt: number | null;
  version: Record<string, string> | null;
};

/** Of an answer: its items are oldest first, those of the next page older. */
type Page<T> = { items: T[]; next_cursor: string | null; gap: string | null };

/** `keeps`: it holds what somebody wrote */
type View = { element: HTMLElement; title: string; close?: () => void; keeps?: () => boolean };

type Opener = (params: Record<string, string>, query: URLSearchParams) => View;

type Column = { name: string; type: string; required: boolean };

type Dot = { at: number; value: number };

type Received = { name: string; data: any; id: string };

type SinkOutcome = {
  name: string;
  state: string;
  batch_rows: number | null;
  read_at?: string | null;
  committed_at?: string | null;
  behind: number;
  version: Record<string, string> | null;
  detail?: string;
  blocked_by?: string;
  message?: string;
  rewinding?: boolean | null;
  guarantee?: string;
};

type StageOutcome = {
  stage: string;
  state: string;
  batch: number | null;
  committed_at: string | null;
  blocked_by: string | null;
  next_run_at?: string;
  sinks: SinkOutcome[];
};

type Bar = { start: number; end: number; tone: string };

type Tone = "good" | "busy" | "bad" | "off" | "doubt";

type Asked = {
  method?: string;
  body?: string;
  type?: string;
  accept?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

type Follower = {
  receive: (received: Received) => void;
  /** called when the stream breaks, and with null when it is there */
  lost: (lost: Error | null) => void;
  /** whether a stream that has ended is at its end for good */
  over?: () => boolean;
};

/** `sign`: "+", "-", or a blank for a line that both have */
type DiffLine = { sign: string; text: string };

type ManifestVersion = { generation: number; manifest: string; until: string | null };

/** Dead letters of one cause, newest first; `newest` is the first of them. */
type Group = { key: string; title: string; newest: any; letters: any[] };

/** What a person made of a dead record; null: as it was */
type Edited = { value: string } | null;

/** `leftOut`: ids that cannot be sent, and why; `error`: what ended it, after what was sent */
type Resent = {
  replayed: number;
  already: number;
  tokens: string[];
  leftOut: Map<string, string>;
  error: unknown;
};
