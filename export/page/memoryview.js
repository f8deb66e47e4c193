// memoryview.js - what torch's allocators held over time, by category; of a moment, what was live then
const curve = { of: null, device: 0, at: null, points: null, width: 0 };
const PLOT = 220;

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

// The device's allocations and frees by time; at one moment frees come first.
function pointsMake(trace, device) {
  const [, first, count] = trace.head.memory.devices[device], { from, to, bytes } = trace.blocks;
  const all = [];
  for (let i = first; i < first + count; i++) {
    all.push([from[i], bytes[i], trace.blockCategory[i]]);
    if (to[i] < Infinity) all.push([to[i], -bytes[i], trace.blockCategory[i]]);
  }
  return all.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

// Of each of `slices` equal stretches the sums at its highest moment; and the highest of all.
function slicesOf(trace, range, slices) {
  const kinds = trace.head.memory.categories.length, end = Math.min(range.to, trace.end), span = end - range.from || 1;
  const now = new Float64Array(kinds), sums = new Float64Array(slices * kinds), totals = new Float64Array(slices), times = new Float64Array(slices);
  const most = new Float64Array(kinds), points = curve.points;
  let total = trace.head.memory.devices[curve.device][3], i = 0, peak = { at: range.from, total: -1, of: [] };
  now[kinds - 1] = total;
  const step = () => { now[points[i][2]] += points[i][1]; total += points[i][1]; i++; };
  while (i < points.length && points[i][0] < range.from) step();
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
    while (i < points.length && points[i][0] <= to && (points[i][0] < to || s + 1 === slices)) {
      const at = points[i][0];
      while (i < points.length && points[i][0] === at) step();
      if (total > totals[s]) keep(at);
    }
  }
  return { kinds, sums, totals, times, most, peak, span, from: range.from };
}

function areaPath(c, kind, slices, high) {
  const y = value => (PLOT - value / high * PLOT).toFixed(1);
  let up = "", back = "";
  for (let s = 0; s < slices; s++) {
    let below = 0;
    for (let k = 0; k < kind; k++) below += c.sums[s * c.kinds + k];
    up += `${s ? "L" : "M"}${s} ${y(below + c.sums[s * c.kinds + kind])}h1`;
    back = `L${s + 1} ${y(below)}h-1${back}`;
  }
  return `${up}${back}z`;
}

function roundAbove(value) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(n => n * ten).find(n => n >= value);
}

function axisDraw(trace, c, high) {
  const texts = [];
  for (let i = 0; i <= 4; i++) texts.push(make("span", { className: "y", textContent: bytesText(high * i / 4), style: `bottom:${25 * i}%` }));
  for (let i = 0; i <= 4; i++) texts.push(make("span", { className: i % 2 ? "x w" : "x", textContent: timeText(c.from + c.span * i / 4), style: `left:${25 * i}%` }));
  const steps = trace.head.steps.filter(s => s[1] >= c.from && s[1] < c.from + c.span), every = Math.ceil(steps.length / 12);
  steps.forEach((s, i) => { if (i % every === 0) texts.push(make("span", { className: "s", textContent: i ? s[0] : `step ${s[0]}`, style: `left:${(100 * (s[1] - c.from) / c.span).toFixed(2)}%` })); });
  byId("curve-axes").replaceChildren(...texts);
}

function curveDraw(trace, range) {
  const box = byId("curve"), slices = Math.max(120, Math.min(1200, Math.round(box.clientWidth || 800))), c = slicesOf(trace, range, slices);
  const high = roundAbove(c.peak.total), svg = byId("curve-svg"), shown = trace.head.memory.categories.map((_, k) => k).filter(k => c.most[k] > 0);
  svg.setAttribute("viewBox", `0 0 ${slices} ${PLOT}`);
  svg.replaceChildren(...shown.map(k => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", areaPath(c, k, slices, high));
    path.setAttribute("class", `m${k}`);
    return path;
  }));
  byId("curve-legend").replaceChildren(...shown.map(k => make("span", {}, swatch(`var(--m${k})`), `${trace.head.memory.categories[k]}: ${bytesText(c.peak.of[k])}`)));
  axisDraw(trace, c, high);
  curve.now = c;
  momentSet(trace, c.peak.at);
}

function momentSet(trace, at) {
  const c = curve.now, s = Math.min(c.totals.length - 1, Math.max(0, Math.floor((at - c.from) / c.span * c.totals.length)));
  curve.at = c.totals[s] === c.peak.total ? c.peak.at : c.times[s];
  curve.slice = s;
  const isPeak = curve.at === c.peak.at, told = `${isPeak ? "Peak: " : ""}${bytesText(c.totals[s])} at ${timeText(curve.at)}`;
  byId("curve-at").style.left = `${(100 * (curve.at - c.from) / c.span).toFixed(3)}%`;
  byId("curve").setAttribute("aria-valuetext", told);
  byId("curve").setAttribute("aria-valuenow", s);
  byId("curve").setAttribute("aria-valuemax", c.totals.length - 1);
  byId("curve-told").textContent = `${told}. Below: what was live then.`;
  liveTable(liveAt(trace, curve.at));
}

function liveAt(trace, at) {
  const [, first, count, before] = trace.head.memory.devices[curve.device], { from, to, bytes } = trace.blocks, rows = new Map();
  for (let i = first; i < first + count; i++) {
    if (from[i] > at || to[i] <= at) continue;
    const key = `${trace.blockOp[i]} ${trace.blockPlace[i]} ${trace.blockCategory[i]}`;
    const row = rows.get(key) || rows.set(key, { name: trace.texts[trace.blockOp[i]], line: trace.texts[trace.blockPlace[i]],
      kind: trace.head.memory.categories[trace.blockCategory[i]], bytes: 0, count: 0 }).get(key);
    row.bytes += bytes[i];
    row.count++;
  }
  if (before > 0) rows.set("before", { name: "(before the window)", line: "", kind: trace.head.memory.categories.at(-1), bytes: before, count: 1 });
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
  if (curve.of !== trace) {
    const devices = trace.head.memory.devices;
    curve.of = trace;
    curve.device = Math.max(0, devices.findIndex(d => d[0] !== "CPU" && d[2]));
    byId("curve-devices").replaceChildren(...(devices.length < 2 ? [] : devices.map((d, i) => make("button", { type: "button", textContent: d[0],
      ariaPressed: i === curve.device, onclick: event => {
        curve.device = i;
        for (const other of event.target.parentNode.children) other.ariaPressed = other === event.target;
        curve.points = pointsMake(trace, i);
        curveDraw(trace, view.range);
      } }))));
    curve.points = pointsMake(trace, curve.device);
  }
  const [, , , , reserved, knows] = trace.head.memory.devices[curve.device];
  byId("memory-note").textContent = [reserved >= 0 ? `At most ${bytesText(reserved)} reserved.` : "",
    knows ? "" : "What was allocated before the window is not in the trace and not counted."].filter(Boolean).join(" ");
  curveDraw(trace, range);
}, "memory");

const curveBox = byId("curve");
const momentAt = event => curve.now.from + curve.now.span * Math.min(1, Math.max(0, (event.clientX - curveBox.getBoundingClientRect().left) / curveBox.clientWidth));
curveBox.addEventListener("pointerdown", event => { curveBox.setPointerCapture(event.pointerId); momentSet(view.trace, momentAt(event)); });
curveBox.addEventListener("pointermove", event => {
  const tip = byId("tip"), c = curve.now, s = Math.min(c.totals.length - 1, Math.floor((momentAt(event) - c.from) / c.span * c.totals.length));
  if (event.buttons) momentSet(view.trace, momentAt(event));
  tip.hidden = false;
  tip.textContent = `${timeText(c.times[s])} · ${bytesText(c.totals[s])}\n` + view.trace.head.memory.categories
    .map((name, k) => [name, c.sums[s * c.kinds + k]]).filter(([, bytes]) => bytes > 0).map(([name, bytes]) => `${name}: ${bytesText(bytes)}`).join("\n");
  tipPlace(event);
});
curveBox.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
curveBox.addEventListener("keydown", event => {
  const c = curve.now, by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -c.totals.length / 10, PageDown: c.totals.length / 10 }[event.key];
  const to = by ? curve.slice + Math.round(by) : { Home: 0, End: c.totals.length - 1 }[event.key];
  if (event.key === "p") momentSet(view.trace, c.peak.at);
  else if (to === undefined) return;
  else momentSet(view.trace, c.from + c.span * (Math.min(c.totals.length - 1, Math.max(0, to)) + 0.5) / c.totals.length);
  event.preventDefault();
});
