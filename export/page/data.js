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

async function blockRead(element) {
  const stream = new Blob([bytesOf(element.textContent)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = await new Response(stream).arrayBuffer();
  const size = new Uint32Array(whole, 0, 1)[0];
  const { columns, head } = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 8, size)));
  const trace = { head };
  for (const [key, [type, at, count]] of Object.entries(columns))
    trace[key] = new (type === "u32" ? Uint32Array : Uint8Array)(whole, 8 + size + at, count);
  if (trace.texts) trace.texts = new TextDecoder().decode(trace.texts).split("\0");
  return trace;
}

// Start times are kept as the time since the event before, in two halves; so they take few bytes.
function timesMake(trace) {
  const n = trace.name.length;
  trace.start = new Float64Array(n);
  trace.span = new Float64Array(n);
  trace.self = new Float64Array(n);
  trace.lanes = trace.head.lanes.map(([pid, tid, device, asynchronous, main, first, count]) =>
    ({ pid, tid, device: !!device, asynchronous: !!asynchronous, main: !!main, first, count }));
  for (const lane of trace.lanes) {
    let at = 0;
    for (let i = lane.first; i < lane.first + lane.count; i++) {
      at += trace.afterLow[i] + trace.afterHigh[i] * HIGH;
      trace.start[i] = at;
      trace.span[i] = trace.spanLow[i] + trace.spanHigh[i] * HIGH;
      trace.self[i] = trace.span[i] - trace.innerLow[i] - trace.innerHigh[i] * HIGH;
      if (lane.device || lane.asynchronous) trace.self[i] = 0;
    }
  }
}

// Of each event the one around it (-1: none) and its row, the first that is free; of each lane its rows. Events that
// overlap without nesting, as a step and the function that ends it, free their rows in any order.
function nestingMake(trace) {
  trace.parent = new Int32Array(trace.name.length).fill(-1);
  trace.depth = new Uint8Array(trace.name.length);
  for (const lane of trace.lanes) {
    const ends = new Float64Array(ROWS_MOST), counts = [];
    let open = [], least = Infinity;
    for (let i = lane.first; i < lane.first + lane.count; i++) {
      const from = trace.start[i], to = from + trace.span[i];
      if (least <= from) open = open.filter(j => trace.start[j] + trace.span[j] > from);
      if (open.length) trace.parent[i] = open[open.length - 1];
      let depth = 0;
      while (depth < ROWS_MOST - 1 && ends[depth] > from) depth++;
      ends[depth] = to;
      trace.depth[i] = depth;
      counts[depth] = (counts[depth] || 0) + 1;
      open.push(i);
      if (open.length > 4 * ROWS_MOST) open.shift();
      least = open.reduce((end, j) => Math.min(end, trace.start[j] + trace.span[j]), Infinity);
    }
    lane.rows = Array.from(counts, count => new Uint32Array(count || 0));
    const at = counts.map(() => 0);
    for (let i = lane.first; i < lane.first + lane.count; i++) lane.rows[trace.depth[i]][at[trace.depth[i]]++] = i;
  }
}

function laneName(lane) {
  if (lane.device) return `GPU ${lane.pid}, stream ${lane.tid}`;
  return `thread ${lane.tid}${lane.main ? " (steps)" : ""}${lane.asynchronous ? ", asynchronous" : ""}, process ${lane.pid}`;
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

async function traceRead(element) {
  const trace = await blockRead(element);
  timesMake(trace);
  nestingMake(trace);
  trace.end = 1;
  for (let i = 0; i < trace.start.length; i++) trace.end = Math.max(trace.end, trace.start[i] + trace.span[i]);
  trace.lanes.forEach(lane => { lane.name = laneName(lane); });
  trace.laneAt = new Uint32Array(trace.name.length);
  trace.lanes.sort((a, b) => b.main - a.main || a.asynchronous - b.asynchronous || a.device - b.device || b.count - a.count);
  trace.lanes.forEach((lane, number) => trace.laneAt.fill(number, lane.first, lane.first + lane.count));
  return trace;
}

// ---- what a stretch of time held ----

const inRange = (range, from, to) => Math.max(0, Math.min(to, range.to) - Math.max(from, range.from));

// Each event's self time in a range: a moment belongs to the event that began last of those that are open, as in the report.
function selfIn(trace, range) {
  if (range.self) return range.self;
  const self = range.self = new Float64Array(trace.start.length), open = [];
  for (const lane of trace.lanes) {
    if (lane.device || lane.asynchronous) continue;
    let now = -Infinity;
    const pass = to => {
      while (now < to && open.length) {
        const i = open[open.length - 1], end = trace.start[i] + trace.span[i], until = Math.min(to, end);
        if (until > now) self[i] += Math.max(0, Math.min(until, range.to) - Math.max(now, range.from));
        now = Math.max(now, until);
        if (end <= now) open.pop();
      }
      now = Math.max(now, to);
    };
    for (let i = lane.first; i < lane.first + lane.count; i++) {
      if (trace.start[i] >= range.to) break;
      pass(trace.start[i]);
      open.push(i);
    }
    pass(range.to);
    open.length = 0;
  }
  return self;
}

// Rows of operators in a range, counted as kprof report counts them.
function opsIn(trace, range) {
  const self = selfIn(trace, range), rows = new Map();
  for (const lane of trace.lanes) {
    const ends = new Map();
    for (let i = lane.first; i < lane.first + lane.count; i++) {
      const from = trace.start[i], to = from + trace.span[i], name = trace.name[i], gpu = trace.gpu ? trace.gpu[i] : 0;
      const begins = from >= range.from && from < range.to, inside = inRange(range, from, to);
      if ((!begins && inside <= 0) || (lane.device && (!begins || !gpu))) continue;
      let row = rows.get(name);
      if (!row) rows.set(name, row = { name: trace.texts[name], text: name, self: 0, total: 0, count: 0, gpu: 0, line: "" });
      if (!lane.device && !lane.asynchronous) row.self += self[i];
      if (begins) { row.count++; row.gpu += gpu; }
      if (lane.device || from < (ends.has(name) ? ends.get(name) : -1)) continue;
      ends.set(name, to);
      row.total += inside;
    }
  }
  return [...rows.values()];
}

// A line or module as kprof report names it; with `backward` it is of the backward ops of that forward line.
const forwardName = (name, backward) => (backward ? "backward of " : "") + name;
const lineOf = (trace, [, line, , , , , , , , backward]) => (line < 0 ? "" : forwardName(trace.texts[line], backward));

function opsOfAll(trace) {
  return trace.head.ops.map(row => {
    const [name, , self, total, count, gpu, , bytes, gpuBytes] = row;
    return { name: trace.texts[name], text: name, line: lineOf(trace, row), self, total, count, gpu, bytes: gpuBytes || bytes };
  });
}

function kernelsIn(trace, range) {
  const rows = new Map();
  for (const lane of trace.lanes) {
    if (!lane.device) continue;
    for (let i = lane.first; i < lane.first + lane.count; i++) {
      if (trace.kind[i] < 4 || trace.kind[i] > 6 || trace.start[i] < range.from || trace.start[i] >= range.to) continue;
      let row = rows.get(trace.name[i]);
      if (!row) rows.set(trace.name[i], row = { name: trace.texts[trace.name[i]], text: trace.name[i], total: 0, count: 0, most: 0, kind: KINDS[trace.kind[i]] });
      row.total += trace.span[i];
      row.count++;
      row.most = Math.max(row.most, trace.span[i]);
    }
  }
  return [...rows.values()];
}
