// data.js - reads a trace's block: deflated columns in base64 (decisions/065)
const PARTS = ["compute", "communication", "copies", "data loading", "idle"];
const KINDS = ["operator", "range", "Python", "CUDA call", "kernel", "copy", "communication", "other"];
const HIGH = 4294967296, ROWS_MOST = 96;

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// A column has as few bits as its largest number needs; without any, all are 0.
const arrayOf = (whole, bits, at, count) => (bits ? new { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array }[bits](whole, at, count) : new Uint8Array(count));

async function blockRead(element) {
  const stream = new Blob([bytesOf(element.textContent)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = await new Response(stream).arrayBuffer();
  const size = new Uint32Array(whole, 0, 1)[0];
  const { columns, head } = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 8, size)));
  for (const [key, [bits, at, count]] of Object.entries(columns)) columns[key] = arrayOf(whole, bits, 8 + size + at, count);
  if (columns.texts) columns.texts = new TextDecoder().decode(columns.texts).split("\0");
  return { head, columns };
}

// Start times are kept as the time since the event before, in two halves; so they take few bytes.
function timesMake(trace) {
  const n = trace.name.length, start = trace.start = new Float64Array(n), span = trace.span = new Float64Array(n);
  const { afterLow, afterHigh, spanLow, spanHigh } = trace;
  for (const { first, count } of trace.lanes) {
    let at = 0;
    for (let i = first; i < first + count; i++) {
      start[i] = at += afterLow[i] + afterHigh[i] * HIGH;
      span[i] = spanLow[i] + spanHigh[i] * HIGH;
    }
  }
}

const selfOf = (trace, i) => trace.span[i] - trace.innerLow[i] - trace.innerHigh[i] * HIGH;

// Of each event the one around it (-1: none) and its row, the first that is free; of each lane its rows. Events that
// overlap without nesting, as a step and the function that ends it, free their rows in any order.
function nestingMake(trace) {
  const { start, span } = trace, n = start.length, parent = trace.parent = new Int32Array(n), row = trace.depth = new Uint8Array(n);
  for (const lane of trace.lanes) {
    const ends = new Float64Array(ROWS_MOST), counts = [], open = [], { first, count } = lane;
    for (let i = first; i < first + count; i++) {
      const from = start[i], to = from + span[i];
      while (open.length && start[open[open.length - 1]] + span[open[open.length - 1]] <= from) open.pop();
      parent[i] = open.length ? open[open.length - 1] : -1;
      open.push(i);
      let depth = 0;
      while (depth < ROWS_MOST - 1 && ends[depth] > from) depth++;
      ends[depth] = to;
      row[i] = depth;
      counts[depth] = (counts[depth] || 0) + 1;
    }
    lane.rows = Array.from(counts, of => new Uint32Array(of || 0));
    const at = counts.map(() => 0);
    for (let i = first; i < first + count; i++) lane.rows[row[i]][at[row[i]]++] = i;
  }
}

// "main thread (steps)", "backward thread 30213"; the process where there are several.
function laneName(trace, lane) {
  if (lane.device) return `GPU ${lane.pid}, stream ${lane.tid}`;
  const host = trace.lanes.filter(other => !other.device), first = trace.texts[trace.name[lane.first]] || "";
  const process = host.some(other => other.pid !== lane.pid) ? ` of process ${lane.pid}` : "";
  const isMain = host.some(other => other.main) ? lane.main : lane.pid === lane.tid;
  if (lane.asynchronous) return `asynchronous, thread ${lane.tid}${process}`;
  if (isMain) return `main thread${lane.main ? " (steps)" : ""}${process}`;
  return `${first.startsWith("autograd::engine::") ? "backward thread" : "thread"} ${lane.tid}${process}`;
}

// Work of a device is of the part that asked for it.
function devicePartsMake(trace) {
  for (const lane of trace.lanes) if (lane.device) for (let i = lane.first; i < lane.first + lane.count; i++) {
    const by = (trace.op && trace.op[i]) || trace.link[i];
    if (by) trace.part[i] = trace.part[by - 1];
  }
}

// Tables know each step as ProfilerStep*; the timeline tells its number.
function eventName(trace, i) {
  const name = trace.texts[trace.name[i]];
  if (name !== "ProfilerStep*") return name || "(no name)";
  const step = trace.head.steps.find(s => s[1] === trace.start[i]);
  return step ? `ProfilerStep#${step[0]}` : name;
}

// Of each event those that it launched, or its backward ops: made when the first arrow is wanted.
function linksMake(trace) {
  if (trace.links) return trace.links;
  trace.links = new Map();
  for (let i = 0; i < trace.link.length; i++) {
    const from = trace.link[i] - 1;
    if (from < 0) continue;
    if (trace.links.has(from)) trace.links.get(from).push(i); else trace.links.set(from, [i]);
  }
  return trace.links;
}

// What the page says at once. Its columns are read when that is drawn.
async function traceRead(element) {
  const { head } = await blockRead(element);
  return { head, end: head.end };
}

async function eventsRead(trace, element) {
  const { columns } = await blockRead(element);
  const lanes = trace.head.lanes.map(([pid, tid, device, asynchronous, main, first, count]) => ({ pid, tid, device: !!device, asynchronous: !!asynchronous, main: !!main, first, count }));
  Object.assign(trace, columns, { lanes });
  timesMake(trace);
  nestingMake(trace);
  lanes.forEach(lane => { lane.name = laneName(trace, lane); });
  devicePartsMake(trace);
  lanes.sort((a, b) => b.main - a.main || a.asynchronous - b.asynchronous || a.device - b.device || b.count - a.count);
}

// Which of the small numbers of a column there are.
function seenIn(column) {
  const seen = new Uint8Array(256);
  for (let i = 0; i < column.length; i++) seen[column[i]] = 1;
  return seen;
}

// ---- what steps held, as kprof report counts it (pagerows.c) ----

// A line or module as kprof report names it; with `backward` it is of the backward ops of that forward line.
const forwardName = (name, backward) => (backward ? "backward of " : "") + name;
const lineOf = (trace, line, backward) => (line < 0 ? "" : forwardName(trace.texts[line], backward));

// Figures of rows (topcolumns.def) of one name: they add up, or the largest stays.
const figuresJoin = (trace, row, more) => trace.head.row_figures.forEach(([key, joins]) => { row[key] = joins === "MOST" ? Math.max(row[key], more[key]) : row[key] + more[key]; });
const rowMake = (trace, text, line) => ({ name: trace.texts[text], text, line: lineOf(trace, (line >> 1) - 1, line & 1), backward: line & 1 });

function rowsOfAll(trace, rows) {
  return rows.map(([text, line, ...figures]) => Object.assign(rowMake(trace, text, line), ...trace.head.row_figures.map(([key], i) => ({ [key]: figures[i] }))));
}

// The rows of steps are joined. `at`: where the rows of each step begin. `ofModule`: a module's backward is a row of its own.
// The line of a row is the one that has most of its time in these steps.
function rowsOfSteps(trace, at, { low, high }, ofModule) {
  const rows = new Map(), figures = trace.head.row_figures.map(([key]) => [key, trace[`row.${key}Low`], trace[`row.${key}High`]]);
  for (let i = at[low]; i < at[high + 1]; i++) {
    const more = rowMake(trace, trace.rowName[i], trace.rowLine[i]), key = ofModule ? 2 * more.text + more.backward : more.text;
    for (const [of, lows, highs] of figures) more[of] = lows[i] + highs[i] * HIGH;
    const row = rows.get(key);
    if (row) figuresJoin(trace, row, more); else rows.set(key, more);
    const { lines } = row || Object.assign(more, { lines: new Map() }), time = trace.head.gpu ? more.gpu : more.self;
    lines.set(more.line, (lines.get(more.line) || 0) + time);
  }
  return [...rows.values()].map(row => ({ ...row, line: [...row.lines].reduce((a, b) => (b[1] > a[1] ? b : a))[0] }));
}

const opsIn = (trace, range) => (range.all ? rowsOfAll(trace, trace.head.ops) : rowsOfSteps(trace, trace.head.step_ops, range));

// By text: 1 + the kind of what has that name and is of a kind from low to high, 0: nothing is.
function kindsOfNames({ kind, name, texts }, low, high) {
  const of = new Uint8Array(texts.length);
  for (let i = 0; i < kind.length; i++) if (kind[i] >= low && kind[i] <= high) of[name[i]] = kind[i] + 1;
  return of;
}

function kernelsIn(trace, range) {
  const rows = range.all ? rowsOfAll(trace, trace.head.kernels) : rowsOfSteps(trace, trace.head.step_kernels, range);
  trace.kinds ||= kindsOfNames(trace, 4, 6);
  return rows.map(row => ({ ...row, total: row.gpu, mean: row.gpu / row.count, kind: KINDS[trace.kinds[row.text] - 1] || "" }));
}
