// flameview.js - call paths of the chosen time as a flame graph (flame.js, as kprof stacks --svg), and their frames as a table
const FLAME_ORDER = [4, 2, 3, 1, 0, 5]; // of part_names; the same as kprof stacks
const METRICS = {
  cpu: { title: "Wall time", text: timeText, isTime: true, tells: "Wall time of the main thread" },
  gpu: { title: "GPU", text: timeText, isTime: true, tells: "Time on GPUs, by the calls that launched it" },
  bytes: { title: "Allocations", text: bytesText, isTime: false, tells: "Bytes allocated, by the calls that asked" },
};
const flame = { metric: "cpu", name: "", of: null, kinds: [], shades: [] };
const flameSvg = byId("flame-svg");

// Of each place the sum of its own moments in the range, for each part: sums[part][place].
function flameSums(trace, metric, range) {
  const of = key => trace[metric + key], places = of("Place"), parts = of("Part");
  const after = of("AfterLow"), afterHigh = of("AfterHigh"), values = of("ValueLow"), valuesHigh = of("ValueHigh");
  const sums = trace.head.part_names.map(() => null);
  let at = 0;
  for (let i = 0; i < places.length; i++) {
    at += after[i] + afterHigh[i] * HIGH;
    if (at >= range.to) break;
    const whole = values[i] + valuesHigh[i] * HIGH;
    const value = METRICS[metric].isTime ? Math.min(at + whole, range.to) - Math.max(at, range.from) : at >= range.from ? whole : 0;
    if (value <= 0) continue;
    const own = sums[parts[i]] || (sums[parts[i]] = new Float64Array(trace.placeName.length));
    own[places[i]] += value;
  }
  return sums;
}

// By place: what colours its box, as kprof stacks does.
function flameColours(trace) {
  flame.of = trace;
  flame.kinds = new Uint8Array(trace.placeName.length);
  flame.shades = new Uint8Array(trace.placeName.length);
  trace.placeName.forEach((text, i) => {
    const name = trace.texts[text];
    flame.kinds[i] = /\.py/.test(name) || name[0] === "<" || name.startsWith("nn.Module: ") ? 0 : name.includes(".so") && name.includes(": ") ? 2 : 1;
    let hash = 2166136261;
    for (let k = 0; k < name.length; k++) hash = Math.imul(hash ^ name.charCodeAt(k), 16777619);
    flame.shades[i] = (hash >>> 20) & 3;
  });
}

function placesBelow(trace, own, total) {
  const below = new Map(), seen = new Uint8Array(own.length);
  for (let i = own.length - 1; i > 0; i--) {
    total[i] += own[i];
    if (total[i] > 0) total[trace.placeParent[i]] += total[i];
  }
  total[0] += own[0];
  for (let i = 1; i < own.length; i++) {
    if (!(total[i] > 0) || seen[i]) continue;
    const parent = trace.placeParent[i];
    if (below.has(parent)) below.get(parent).push(i); else below.set(parent, [i]);
  }
  return below;
}

function partBoxes(trace, boxes, part, own, from, whole) {
  const total = new Float64Array(own.length), below = placesBelow(trace, own, total), text = METRICS[flame.metric].text;
  const box = (up, name, x, value, d, kind, shade) => ({ up, name, x, w: value / whole, d, text: `${name} (${text(value)}, ${percentText(value / whole)})`,
    colour: `c${part}${kind}${shade}`, value });
  const open = [{ place: 0, x: from, d: 1, up: box(null, trace.head.part_names[part], from, total[0], 1, 1, 0) }];
  boxes.push(open[0].up);
  while (open.length) {
    const { place, x, d, up } = open.pop();
    let at = x;
    const inside = (below.get(place) || []).sort((a, b) => (trace.texts[trace.placeName[a]] < trace.texts[trace.placeName[b]] ? -1 : 1));
    for (const i of inside) {
      const one = box(up, trace.texts[trace.placeName[i]], at, total[i], d + 1, flame.kinds[i], flame.shades[i]);
      boxes.push(one);
      open.push({ place: i, x: at, d: d + 1, up: one });
      at += total[i] / whole;
    }
  }
  return total[0];
}

function flameBoxes(trace, sums) {
  const whole = sums.reduce((all, own) => all + (own ? own.reduce((a, b) => a + b, 0) : 0), 0), parts = [];
  const boxes = [{ name: "all", x: 0, w: 1, d: 0, text: `all (${METRICS[flame.metric].text(whole)})`, colour: "c010", value: whole }];
  let at = 0;
  for (const part of FLAME_ORDER) {
    if (!sums[part] || !(whole > 0)) continue;
    const value = partBoxes(trace, boxes, part, sums[part], at, whole);
    parts.push([part, value]);
    at += value / whole;
  }
  return { boxes, whole, parts };
}

// ---- callers and callees of one function ----

// All calls of a name as one box: above it who called it, below it what it called. A call inside itself is part of the outer one.
function callsOf(boxes, name) {
  const node = (box, value = 0) => ({ name: box.name, colour: box.colour, value, inside: new Map() }), first = boxes.find(b => b.name === name);
  const inside = (at, b, value) => { const to = at.inside.get(b.name) || at.inside.set(b.name, node(b)).get(b.name); to.value += value; return to; };
  const callees = node(first), callers = node(first), nodes = new Map();
  for (const b of boxes) { // what calls comes before what it calls
    const at = nodes.get(b.up);
    if (at) nodes.set(b, inside(at, b, b.value));
    else if (b.name === name && b.d > 1) {
      nodes.set(b, callees);
      callees.value += b.value;
      for (let up = b.up, from = callers; up; up = up.up) from = inside(from, up, b.value);
    }
  }
  return { callees, callers };
}

function callBoxes(boxes, name) {
  const { callees, callers } = callsOf(boxes, name), whole = callees.value || 1, made = [], text = METRICS[flame.metric].text;
  const put = (root, way) => {
    const open = [{ at: root, x: 0, d: 0 }];
    while (open.length) {
      const { at, x, d } = open.pop();
      if (d || way > 0) made.push({ name: at.name, x, w: at.value / whole, d: way * d, colour: at.colour, value: at.value, text: `${at.name} (${text(at.value)}, ${percentText(at.value / whole)})` });
      let next = x;
      for (const one of [...at.inside.values()].sort((a, b) => b.value - a.value)) { open.push({ at: one, x: next, d: d + 1 }); next += one.value / whole; }
    }
  };
  put(callers, -1);
  put(callees, 1);
  const top = made.reduce((least, b) => Math.min(least, b.d), 0);
  for (const b of made) b.d -= top;
  return made;
}

// name "": the whole graph again.
function callsShow(name) {
  flame.name = name;
  const calls = name && flame.boxes.some(b => b.name === name && b.d > 1) ? callBoxes(flame.boxes, name) : null;
  flameSvg.replaceChildren();
  for (const b of flame.boxes) b.g = b.rect = b.label = undefined;
  flameGraphOf.set(calls || flame.boxes);
  flameFind(byId("flame-find").value);
  byId("flame-told").textContent = flame.told;
  byId("flame-note").replaceChildren(...proseMake(calls ? `${name}: ${METRICS[flame.metric].text(calls.reduce((most, b) => Math.max(most, b.value), 0))}. Above: who calls it. Below: what it calls.` : flame.note).childNodes);
  callsButton();
}

// The button is about the chosen frame, or leads back.
function callsButton() {
  const chosen = flameGraphOf.chosen(), isThere = flame.name || (chosen && chosen.d > 1), button = byId("flame-calls");
  button.hidden = !isThere;
  button.textContent = flame.name ? "Back to all frames" : "Callers and callees";
  if (isThere) button.ariaLabel = flame.name ? "Back to all frames" : `Callers and callees of ${chosen.name}`;
}

// ---- drawing ----

const SVG = "http://www.w3.org/2000/svg";
const flameGraphOf = flameGraph(flameSvg, {
  width: () => flameSvg.parentNode.clientWidth,
  top: () => 6,
  least: () => 60,
  tell: text => { byId("flame-told").textContent = text; callsButton(); },
  drawn: isZoomed => { byId("flame-back").hidden = !isZoomed; },
  make(b) {
    b.g = document.createElementNS(SVG, "g");
    b.rect = document.createElementNS(SVG, "rect");
    b.label = document.createElementNS(SVG, "text");
    b.g.setAttribute("class", `b${b.hit ? " hit" : ""}`);
    b.rect.setAttribute("class", b.colour);
    b.rect.setAttribute("height", 17);
    b.g.append(b.rect, b.label);
    flameSvg.append(b.g);
    flameGraphOf.listen(b);
  },
});

const framesTable = tableMake(document.querySelector("#flames .table"), [{ key: "name", title: "Frame" },
  { key: "self", title: "Itself", format: value => METRICS[flame.metric].text(value), share: true },
  { key: "total", title: "With what it calls", format: value => METRICS[flame.metric].text(value) }], "self", row => flameFind(row.name, true));

// A frame inside itself counts once.
function framesOf(boxes) {
  const rows = new Map(), ends = new Map();
  for (const b of boxes) {
    if (b.d < 2) continue;
    const row = rows.get(b.name) || rows.set(b.name, { name: b.name, self: 0, total: 0 }).get(b.name);
    row.self += b.value;
    const end = ends.get(b.name);
    if (end && b.x >= end.x - 1e-12 && b.x + b.w <= end.x + end.w + 1e-12 && b.d > end.d) continue;
    ends.set(b.name, b);
    row.total += b.value;
  }
  return rows;
}

function flameDraw(trace, range) {
  const { boxes, whole, parts } = flameBoxes(trace, flameSums(trace, flame.metric, range)), text = METRICS[flame.metric].text;
  byId("flame-legend").replaceChildren(...parts.map(([part, value]) => make("span", {}, swatch(`var(--f${part})`),
    `${trace.head.part_names[part]} ${text(value)}, ${percentText(value / whole)}`)));
  byId("flame-none").hidden = whole > 0;
  byId("flame-none").textContent = "Nothing of this kind in the chosen time.";
  flame.boxes = boxes;
  flame.told = `${METRICS[flame.metric].tells}: ${text(whole)}`;
  callsShow(flame.name);
  if (byId("frames").open) framesDraw(boxes);
}

function framesDraw(boxes) {
  const rows = framesOf(boxes), inside = new Map(), last = [];
  for (const b of [...boxes].sort((a, c) => a.x - c.x || a.d - c.d)) {
    last[b.d] = b;
    if (b.d > 1) inside.set(last[b.d - 1], (inside.get(last[b.d - 1]) || 0) + b.value);
  }
  for (const [b, value] of inside) if (rows.has(b.name) && b.d > 1) rows.get(b.name).self -= value;
  framesTable([...rows.values()].map(row => ({ ...row, self: Math.max(0, Math.round(row.self)) })));
}

function flameFind(text, isName) {
  if (isName) { byId("flame-find").value = text; flameSvg.parentNode.focus(); }
  const plain = text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  byId("flame-matches").textContent = flameGraphOf.find(plain, "i");
}

// ---- what there is ----

function flameShow(trace) {
  const there = Object.keys(METRICS).filter(metric => trace[`${metric}Place`] && trace[`${metric}Place`].length);
  if (!there.includes(flame.metric)) flame.metric = there[0] || "cpu";
  byId("flame-metrics").replaceChildren(...there.map(metric => make("button", { type: "button", textContent: METRICS[metric].title,
    ariaPressed: metric === flame.metric, onclick: () => { flame.metric = metric; flameShow(trace); flameDraw(trace, view.range); } })));
  flame.note = trace.head.run.frames ? "" :
    "Python's frames are not in this trace, so only operators are shown: record with kprof run --with-stack (KPROF_WITH_STACK=ops).";
}

onChange((trace, range) => {
  if (flame.of !== trace) { flameColours(trace); flameShow(trace); }
  if (!trace.cpuPlace || !trace.cpuPlace.length) { byId("flame-none").hidden = false; return; }
  flameDraw(trace, range);
}, "flames");
byId("flame-find").oninput = event => flameFind(event.target.value);
const callsTurn = () => { const chosen = flameGraphOf.chosen(); if (flame.name || (chosen && chosen.d > 1)) callsShow(flame.name ? "" : chosen.name); };
byId("flame-calls").onclick = callsTurn;
byId("flame-back").onclick = () => flameGraphOf.zoom(null);
byId("frames").addEventListener("toggle", () => { if (byId("frames").open && flame.boxes) framesDraw(flame.boxes); });
flameSvg.parentNode.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && flameGraphOf.isZoomed()) flameGraphOf.zoom(null);
  else if (event.key === "Escape" && flame.name) callsShow("");
  else if (event.key === "c") callsTurn();
  else if (!flameGraphOf.key(event.key)) return;
  event.preventDefault();
});
new ResizeObserver(() => { if (flame.boxes) flameGraphOf.place(); }).observe(flameSvg.parentNode);
