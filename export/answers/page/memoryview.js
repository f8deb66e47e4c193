// memoryview.js - what torch's allocators held over time, by category; of a moment, what was live then
const memory = { of: null, device: 0, points: null, slice: -1 };

function blocksMake(trace) {
  if (trace.blocks || !trace.head.memory) return;
  const n = trace.blockOp.length, blocks = trace.blocks = { from: new Float64Array(n), to: new Float64Array(n), bytes: new Float64Array(n) };
  for (const [, first, count] of trace.head.memory.devices) {
    let at = 0;
    for (let i = first; i < first + count; i++) {
      at += trace.blockAfterLow[i] + trace.blockAfterHigh[i] * HIGH;
      const stays = trace.blockLifeHigh[i] === 0xffffffff;
      blocks.from[i] = at;
      blocks.to[i] = stays ? Infinity : at + trace.blockLifeLow[i] + trace.blockLifeHigh[i] * HIGH;
      blocks.bytes[i] = trace.blockBytesLow[i] + trace.blockBytesHigh[i] * HIGH;
    }
  }
}

// The device's allocations and frees by time. The blocks are by time of their allocation.
function pointsMake(trace, device) {
  const [, first, count] = trace.head.memory.devices[device], { from, to, bytes } = trace.blocks, ends = [];
  for (let i = first; i < first + count; i++) if (to[i] < Infinity) ends.push(i);
  const frees = Uint32Array.from(ends).sort((a, b) => to[a] - to[b]), n = count + frees.length;
  const points = { at: new Float64Array(n), bytes: new Float64Array(n), kind: new Uint8Array(n) };
  for (let i = first, free = 0, k = 0; k < n; k++) {
    const isFree = i === first + count || (free < frees.length && to[frees[free]] <= from[i]), block = isFree ? frees[free++] : i++;
    points.at[k] = isFree ? to[block] : from[block];
    points.bytes[k] = isFree ? -bytes[block] : bytes[block];
    points.kind[k] = trace.blockCategory[block];
  }
  return points;
}

// Of each of `slices` equal stretches the sums at its highest moment; and the highest of all.
function slicesOf(trace, range, slices) {
  const kinds = trace.head.memory.categories.length, end = Math.min(range.to, trace.end), span = end - range.from || 1;
  const now = new Float64Array(kinds), sums = new Float64Array(slices * kinds), totals = new Float64Array(slices), times = new Float64Array(slices);
  const most = new Float64Array(kinds), points = memory.points;
  let total = trace.head.memory.devices[memory.device][3], i = 0, peak = { at: range.from, total: -1, of: [] };
  now[kinds - 1] = total;
  const step = () => { now[points.kind[i]] += points.bytes[i]; total += points.bytes[i]; i++; };
  while (i < points.at.length && points.at[i] < range.from) step();
  for (let s = 0; s < slices; s++) {
    const to = s + 1 === slices ? end : range.from + span * (s + 1) / slices;
    const keep = at => {
      totals[s] = total;
      times[s] = at;
      sums.set(now, s * kinds);
      for (let k = 0; k < kinds; k++) most[k] = Math.max(most[k], now[k]);
      if (total > peak.total) peak = { at, total, of: [...now] };
    };
    keep(range.from + span * s / slices);
    while (i < points.at.length && points.at[i] <= to && (points.at[i] < to || s + 1 === slices)) {
      const at = points.at[i];
      while (i < points.at.length && points.at[i] === at) step();
      if (total > totals[s]) keep(at);
    }
  }
  return { kinds, sums, totals, times, most, peak, span, from: range.from, names: trace.head.memory.categories, steps: trace.head.steps, zero: trace.head.run.zero };
}

const curve = memoryCurve(byId("curve-svg"), {
  width: () => byId("curve").clientWidth || 800,
  tell: (slice, text) => {
    for (const [name, value] of Object.entries({ now: slice, max: curve.count() - 1, text })) byId("curve").setAttribute(`aria-value${name}`, value);
    byId("curve-told").textContent = `${text}. Below: what was live then.`;
    if (memory.slice !== slice) liveTable(liveAt(view.trace, curve.at()));
    memory.slice = slice;
  },
});

function curveDraw(trace, range) {
  memory.slice = -1;
  curve.set(slicesOf(trace, range, Math.max(120, Math.min(1200, Math.round(byId("curve").clientWidth || 800)))));
}

function liveAt(trace, at) {
  const [, first, count, before] = trace.head.memory.devices[memory.device], { from, to, bytes } = trace.blocks, rows = new Map();
  for (let i = first; i < first + count; i++) {
    if (from[i] > at || to[i] <= at) continue;
    const key = `${trace.blockOp[i]} ${trace.blockPlace[i]} ${trace.blockCategory[i]}`;
    const row = rows.get(key) || rows.set(key, { name: trace.texts[trace.blockOp[i]].replace(/^autograd::engine::evaluate_function: /, ""), line: trace.texts[trace.blockPlace[i]],
      kind: trace.head.memory.categories[trace.blockCategory[i]], bytes: 0, count: 0 }).get(key);
    row.bytes += bytes[i];
    row.count++;
  }
  if (before > 0) rows.set("before", { name: "(before recording)", line: "", kind: trace.head.memory.categories.at(-1), bytes: before, count: 1 });
  return [...rows.values()];
}

const liveTable = tableMake(document.querySelector("#memory .table"), [{ key: "name", title: "Allocated in" },
  { key: "bytes", title: "Live", format: bytesText, share: true }, { key: "count", title: "Blocks", format: countText },
  { key: "kind", title: "Category" }, { key: "line", title: "Module, line", line: true }], "bytes");

onChange((trace, range) => {
  const there = !!trace.head.memory && trace.blockOp.length > 0;
  byId("memory-none").hidden = there;
  byId("memory-there").hidden = !there;
  if (!there) return;
  blocksMake(trace);
  if (memory.of !== trace) {
    const devices = trace.head.memory.devices;
    memory.of = trace;
    memory.device = Math.max(0, devices.findIndex(d => d[0] !== "CPU" && d[2]));
    byId("curve-devices").replaceChildren(...(devices.length < 2 ? [] : devices.map((d, i) => make("button", { type: "button", textContent: d[0],
      ariaPressed: i === memory.device, onclick: event => {
        memory.device = i;
        for (const other of event.target.parentNode.children) other.ariaPressed = other === event.target;
        memory.points = pointsMake(trace, i);
        curveDraw(trace, view.range);
      } }))));
    memory.points = pointsMake(trace, memory.device);
  }
  const [, , , , reserved, knows] = trace.head.memory.devices[memory.device];
  byId("memory-note").textContent = [reserved >= 0 ? `At most ${bytesText(reserved)} reserved.` : "",
    knows ? "" : "Memory allocated before recording began is not in the trace and not counted."].filter(Boolean).join(" ");
  curveDraw(trace, range);
}, "memory");

const curveBox = byId("curve");
curveBox.addEventListener("pointerdown", event => { curveBox.setPointerCapture(event.pointerId); curve.choose(curve.pointed(event)); });
curveBox.addEventListener("pointermove", event => {
  const tip = byId("tip"), slice = curve.pointed(event);
  if (event.buttons) curve.choose(slice);
  tip.hidden = false;
  tip.textContent = curve.detail(slice);
  tipPlace(event);
});
curveBox.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
curveBox.addEventListener("keydown", event => { if (curve.key(event.key)) event.preventDefault(); });
addEventListener("resize", () => { if (memory.of === view.trace && curveBox.clientWidth) curveDraw(view.trace, view.range); });
