// timeline.js - threads and streams on a canvas. Of events that share a pixel one is drawn, found by a search, so that a
// frame costs as many steps as it has pixels and not as the trace has events. Boxes are pixels of one picture, since
// tens of thousands of rectangles are too many for the canvas; names are drawn over it.
const ROW = 17, TOP = 24, HEAD = 20, LEAST_NS = 20, LINKS_MOST = 200;
const lanesBox = byId("lanes"), canvas = byId("canvas"), pen = canvas.getContext("2d", { alpha: false });
const scene = { from: 0, to: 1, picked: -1, hits: null, hit: -1, colours: [], queued: false, frames: [], labels: [] };
// How light each kind is, by day and by night; its hue is that of its part in all views (--f0 to --f5).
const LIGHT = [[74, 34], [88, 24], [89, 23], [80, 30], [66, 40], [76, 36], [68, 42], [84, 28]];

// "rgb(1, 2, 3)" or "color(srgb 0.1 0.2 0.3)" as a pixel of a picture.
function pixelOf(text) {
  const bytes = new Uint8Array(4), most = text.startsWith("rgb") ? 1 : 255;
  bytes.set(text.match(/[\d.]+(e-\d+)?/g).slice(0, 3).map(value => value * most));
  bytes[3] = 255;
  return new Uint32Array(bytes.buffer)[0];
}

// What the browser makes of colours, all at once: each look at a style that is new costs a pass over the page.
function coloursOf(texts) {
  const probes = texts.map(color => { const probe = make("i"); probe.style.color = color; return probe; }), place = make("div", {}, ...probes);
  document.body.append(place);
  const found = probes.map(probe => getComputedStyle(probe).color);
  place.remove();
  return found;
}

function coloursMake() {
  const scheme = document.documentElement.dataset.scheme, names = ["paper", "card", "ink", "dim", "line", "accent", "hit"];
  if (scene.scheme === scheme) return;
  const dark = scheme === "dark", shades = LIGHT.flatMap((light, kind) => [0, 1, 2, 3, 4, 5].flatMap(part => [0, 1, 2, 3].map(shade =>
    `hsl(from var(--${{ 6: "p1", 5: "p2" }[kind] || `f${part}`}) h calc(s * .7) ${dark ? light[1] + 2 * shade : light[0] - 3 * shade}%)`)));
  const found = coloursOf([...names.map(name => `var(--${name})`), ...shades]), pixels = found.splice(names.length).map(pixelOf);
  names.forEach((name, i) => { scene[name] = found[i]; });
  scene.ink = Object.fromEntries([["hit", "hit"], ["picked", "accent"], ["card", "card"], ["line", "line"]].map(([use, name]) => [use, pixelOf(scene[name])]));
  scene.colours = LIGHT.map((_, kind) => [0, 1, 2, 3, 4, 5].map(part => pixels.slice(4 * (6 * kind + part)).slice(0, 4)));
  scene.text = dark ? "#eceef2" : "#1b1f24";
  scene.scheme = scheme;
}

function laneTops(trace) {
  let top = TOP;
  for (const lane of trace.lanes) {
    lane.top = top;
    top += HEAD + lane.rows.length * ROW + 8;
  }
  byId("tall").style.height = `${top}px`;
  lanesBox.style.height = `min(70vh, 34rem, ${top + 4}px)`;
}

// The first event of a row, by index in it, that begins at `at` or later.
function rowFrom(trace, row, at) {
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (trace.start[row[middle]] < at) low = middle + 1; else high = middle;
  }
  return low;
}

// The same from index `low` on, where about `guess` events lie between.
function rowNext(trace, row, low, at, guess) {
  let by = Math.max(1, guess), high = low;
  while (high < row.length && trace.start[row[high]] < at) {
    low = high + 1;
    high = low + by;
    by *= 2;
  }
  high = Math.min(high, row.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (trace.start[row[middle]] < at) low = middle + 1; else high = middle;
  }
  return low;
}

// Puts an event into a row's line of pixels; a name that fits is drawn later.
function boxPut(trace, i, y, line, scale, ratio) {
  const from = (trace.start[i] - scene.from) * scale, to = from + trace.span[i] * scale;
  const left = Math.max(0, Math.round(from)), right = Math.min(line.length, Math.max(left + 1, Math.round(to)));
  const colour = i === scene.picked ? scene.ink.picked :
    scene.hits && scene.hits.has(trace.name[i]) ? scene.ink.hit : scene.colours[trace.kind[i]][trace.part[i]][trace.name[i] & 3];
  if (right - left > 3 * ratio) line.fill(colour, left, to < line.length ? right - 1 : right);
  else for (let x = left; x < right; x++) line[x] = colour;
  if (right - left >= 28 * ratio) scene.labels.push(i, y, left / ratio, right / ratio);
}

function rowPut(trace, row, y, line, ratio) {
  const scale = line.length / (scene.to - scene.from), pixel = 1 / scale;
  let at = Math.max(0, rowFrom(trace, row, scene.from) - 1), guess = 1;
  while (at < row.length && trace.start[row[at]] < scene.to) {
    const i = row[at], end = trace.start[i] + trace.span[i];
    if (end >= scene.from) boxPut(trace, i, y, line, scale, ratio);
    at++;
    if (trace.span[i] >= pixel || at >= row.length || trace.start[row[at]] >= end + pixel) continue;
    const next = rowNext(trace, row, at, Math.max(trace.start[i], scene.from) + pixel, guess);
    guess = next - at >> 1;
    at = Math.max(at, next - 1); // of those that begin within this pixel the last may be a long one
  }
}

// The picture of this size, each line of it as where no event is: a line for each step.
function pictureMake(trace, width, height) {
  if (!scene.picture || scene.picture.width !== width || scene.picture.height !== height) {
    scene.picture = pen.createImageData(width, height);
    scene.pixels = new Uint32Array(scene.picture.data.buffer);
    scene.rowLine = new Uint32Array(width);
    scene.empty = new Uint32Array(width);
  }
  const scale = width / (scene.to - scene.from);
  scene.empty.fill(scene.ink.card);
  for (const step of trace.head.steps) {
    const x = Math.round((step[1] - scene.from) * scale);
    if (x >= 0 && x < width) scene.empty[x] = scene.ink.line;
  }
  for (let y = 0; y < height; y++) scene.pixels.set(scene.empty, y * width);
}

// Draws the rows of all lanes that are seen.
function rowsDraw(trace, up, ratio) {
  const { width, height } = scene.picture, { rowLine: line, pixels, empty } = scene;
  scene.labels.length = 0;
  for (const lane of trace.lanes) {
    for (let depth = 0; depth < lane.rows.length; depth++) {
      const y = lane.top - up + HEAD + depth * ROW;
      if (y <= TOP - ROW || y * ratio >= height) continue;
      line.set(empty);
      rowPut(trace, lane.rows[depth], y, line, ratio);
      const last = Math.min(height, Math.round((y + ROW - 1) * ratio));
      for (let at = Math.max(0, Math.round(y * ratio)); at < last; at++) pixels.set(line, at * width);
    }
  }
  pen.putImageData(scene.picture, 0, 0);
}

function labelsDraw(trace) {
  const letter = pen.measureText("m").width; // of a font in which all are as wide
  for (let at = 0; at < scene.labels.length; at += 4) {
    const [i, y, left, right] = scene.labels.slice(at, at + 4);
    const fits = Math.floor((right - left - 6) / letter), text = eventName(trace, i);
    if (fits < 3) continue;
    pen.fillStyle = i === scene.picked ? scene.card : scene.text;
    pen.fillText(cutText(text, fits), left + 4, y + ROW - 5);
  }
}

function rulerDraw(width) {
  const span = scene.to - scene.from, tick = tickOf(span / Math.max(2, width / 130));
  pen.fillStyle = scene.card;
  pen.fillRect(0, 0, width, TOP - 2);
  pen.fillStyle = scene.dim;
  const zero = view.trace.head.run.zero;
  for (let at = Math.ceil((scene.from + zero) / tick) * tick; at < scene.to + zero; at += tick) {
    const x = Math.round((at - zero - scene.from) / span * width);
    pen.fillRect(x, TOP - 7, 1, 5);
    pen.fillText(axisText(Math.abs(at) < tick / 2 ? 0 : at, Math.max(Math.abs(scene.from + zero), Math.abs(scene.to + zero)), tick), x + 3, 13);
  }
  pen.fillStyle = scene.line;
  pen.fillRect(0, TOP - 2, width, 1);
}

// Which parts of a step the colours are, and what else there is.
function timelineLegend(trace) {
  const parts = seenIn(trace.part), kinds = seenIn(trace.kind), order = [2, 3, 1, 4, 0, 5];
  byId("timeline-legend").replaceChildren(...order.filter(part => parts[part]).map(part => make("span", {}, swatch(`var(--f${part})`), trace.head.part_names[part])),
    ...[[6, "--p1", "communication"], [5, "--p2", "copies"]].filter(([kind]) => kinds[kind]).map(([, colour, text]) => make("span", {}, swatch(`var(${colour})`), text)),
    ...(kinds[2] ? [make("span", { textContent: "pale: Python functions" })] : []));
}

function frameDraw() {
  const trace = view.trace, width = lanesBox.clientWidth, height = lanesBox.clientHeight, ratio = devicePixelRatio || 1, begun = performance.now();
  scene.queued = false;
  if (!trace || !trace.lanes || !width) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = `11px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
  const up = lanesBox.scrollTop;
  pictureMake(trace, canvas.width, canvas.height);
  rowsDraw(trace, up, ratio);
  labelsDraw(trace);
  pen.fillStyle = scene.dim;
  for (const lane of trace.lanes) if (lane.top - up < height && lane.top - up > -HEAD) pen.fillText(lane.name, 6, lane.top - up + 14);
  if (scene.area) areaDraw(trace, width, up);
  if (scene.picked >= 0) linksDraw(trace, width, up);
  rulerDraw(width);
  scene.frames.push(performance.now() - begun);
  if (scene.frames.length > 600) scene.frames.shift();
}

function areaDraw(trace, width, up) {
  const { from, to, low, high } = scene.area, scale = width / (scene.to - scene.from), last = trace.lanes[high];
  const left = (from - scene.from) * scale, top = trace.lanes[low].top - up, wide = Math.max(1, (to - from) * scale), tall = last.top - up + HEAD + last.rows.length * ROW - top;
  pen.fillStyle = pen.strokeStyle = scene.accent;
  pen.globalAlpha = 0.18;
  pen.fillRect(left, top, wide, tall);
  pen.globalAlpha = 1;
  pen.lineWidth = 1.5;
  pen.strokeRect(left, top, wide, tall);
}

// Arrows from what launched the picked event, or made it, to what it launched.
function linksDraw(trace, width, up) {
  const scale = width / (scene.to - scene.from), from = trace.link[scene.picked] - 1, to = linksMake(trace).get(scene.picked) || [];
  const place = (i, at) => ({ x: (at - scene.from) * scale, y: laneOf(i).top - up + HEAD + trace.depth[i] * ROW + ROW / 2 });
  pen.strokeStyle = pen.fillStyle = scene.accent;
  pen.lineWidth = 1.5;
  const pairs = [...(from >= 0 ? [[from, scene.picked]] : []), ...to.slice(0, LINKS_MOST).map(i => [scene.picked, i])];
  for (const [a, b] of pairs) {
    const start = place(a, trace.start[a]), end = place(b, trace.start[b]), bend = Math.max(16, Math.abs(end.x - start.x) / 3);
    pen.beginPath();
    pen.moveTo(start.x, start.y);
    pen.bezierCurveTo(start.x + bend, start.y, end.x - bend, end.y, end.x, end.y);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(end.x + 1, end.y);
    pen.lineTo(end.x - 7, end.y - 4);
    pen.lineTo(end.x - 7, end.y + 4);
    pen.fill();
  }
}

function redraw() {
  if (!scene.queued) { scene.queued = true; requestAnimationFrame(frameDraw); }
}

// ---- moving ----

function windowSet(from, to) {
  const span = Math.min(Math.max(to - from, LEAST_NS), view.trace.end * 1.1), most = view.trace.end * 1.05;
  from = Math.min(Math.max(from, -0.05 * view.trace.end), most - span);
  scene.from = from;
  scene.to = from + span;
  redraw();
}

function zoom(by, at = 0.5) {
  const span = scene.to - scene.from, middle = scene.from + span * at;
  windowSet(middle - span * by * at, middle + span * by * (1 - at));
}
const pan = by => windowSet(scene.from + by * (scene.to - scene.from), scene.to + by * (scene.to - scene.from));
const fitAll = () => windowSet(view.range.from, Math.min(view.range.to, view.trace.end));

function laneOf(i) { return view.trace.lanes.find(lane => i >= lane.first && i < lane.first + lane.count); }

function pick(i, moves) {
  const trace = view.trace, told = byId("event");
  scene.picked = i;
  redraw();
  if (i < 0) { told.replaceChildren(); return; }
  const lane = laneOf(i), item = text => make("span", { textContent: text });
  told.replaceChildren(make("div", {}, make("b", { textContent: eventName(trace, i) })), item(KINDS[trace.kind[i]]),
    item(`lasts ${timeText(trace.span[i])}`), ...(lane.device || lane.asynchronous ? [] : [item(`self ${timeText(selfOf(trace, i))}`)]),
    ...(trace.gpu && !lane.device && trace.gpu[i] ? [item(`on the GPU ${timeText(trace.gpu[i])}`)] : []), item(`from ${timeText(trace.start[i] + trace.head.run.zero)}`), item(lane.name),
    ...(trace.work && trace.work[i] ? trace.texts[trace.work[i] - 1].split("; ").map(item) : []),
    ...(trace.module && trace.module[i] ? [item(moduleName(trace, trace.module[i]))] : []), ...linkButtons(trace, i));
  if (!moves) return;
  const y = lane.top + HEAD + trace.depth[i] * ROW, end = trace.start[i] + trace.span[i], span = scene.to - scene.from;
  if (y - lanesBox.scrollTop < TOP + ROW || y - lanesBox.scrollTop > lanesBox.clientHeight - ROW) lanesBox.scrollTop = y - lanesBox.clientHeight / 2;
  if (end < scene.from || trace.start[i] > scene.to) windowSet(trace.start[i] + trace.span[i] / 2 - span / 2, trace.start[i] + trace.span[i] / 2 + span / 2);
}

function linkButtons(trace, i) {
  const from = trace.link[i] - 1, to = linksMake(trace).get(i) || [], isDevice = laneOf(i).device;
  const button = (word, at) => make("button", { type: "button", textContent: `${word} ${eventName(trace, at)}`, onclick: () => pick(at, true) });
  return [...(from >= 0 ? [button(isDevice ? "↖ launched by" : "↖ forward:", from)] : []),
    ...(trace.op && trace.op[i] ? [button("↖ op", trace.op[i] - 1)] : []),
    ...to.slice(0, 3).map(at => button(laneOf(at).device ? "↘ launched" : "↘ backward:", at))];
}

function eventAt(x, y) {
  const trace = view.trace, at = scene.from + x / lanesBox.clientWidth * (scene.to - scene.from), pixel = (scene.to - scene.from) / lanesBox.clientWidth;
  if (y < TOP) return -1;
  y += lanesBox.scrollTop;
  const lane = trace.lanes.find(l => y >= l.top + HEAD && y < l.top + HEAD + l.rows.length * ROW);
  if (!lane) return -1;
  const row = lane.rows[Math.floor((y - lane.top - HEAD) / ROW)], i = row[rowFrom(trace, row, at + pixel) - 1];
  return i !== undefined && trace.start[i] + trace.span[i] >= at - pixel ? i : -1;
}

// ---- from event to event ----

function neighbour(by) {
  const row = laneOf(scene.picked).rows[view.trace.depth[scene.picked]];
  return row[rowFrom(view.trace, row, view.trace.start[scene.picked]) + by];
}

function childOf(i) {
  const next = i + 1;
  return next < view.trace.parent.length && view.trace.parent[next] === i ? next : undefined;
}

function arrow(key) {
  if (scene.picked < 0) {
    const first = view.trace.lanes[0], row = first && first.rows[0];
    return row ? row[Math.min(rowFrom(view.trace, row, scene.from), row.length - 1)] : undefined;
  }
  if (key === "ArrowLeft") return neighbour(-1);
  if (key === "ArrowRight") return neighbour(1);
  return key === "ArrowUp" ? (view.trace.parent[scene.picked] < 0 ? undefined : view.trace.parent[scene.picked]) : childOf(scene.picked);
}

// The other end of the picked event's arrow.
function linked() {
  if (scene.picked < 0) return undefined;
  const from = view.trace.link[scene.picked] - 1;
  return from >= 0 ? from : (linksMake(view.trace).get(scene.picked) || [])[0];
}

function zoomToPicked() {
  if (scene.picked < 0) return;
  const from = view.trace.start[scene.picked], span = Math.max(view.trace.span[scene.picked], LEAST_NS);
  windowSet(from - span * 0.1, from + span * 1.1);
}

lanesBox.addEventListener("keydown", event => {
  const does = { a: () => pan(-0.2), d: () => pan(0.2), w: () => zoom(0.7), s: () => zoom(1 / 0.7), "+": () => zoom(0.7), "-": () => zoom(1 / 0.7),
    0: fitAll, Home: fitAll, Enter: zoomToPicked, m: areaOfSight, n: () => matchGo(1), N: () => matchGo(-1) }[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && scene.area) areaSet(null);
  else if (event.key === "Escape" && scene.picked >= 0) pick(-1);
  else if (event.key === "f") { const i = linked(); if (i !== undefined) pick(i, true); }
  else if (event.key.startsWith("Arrow")) { const i = arrow(event.key); if (i !== undefined) pick(i, true); }
  else if (does) does();
  else return;
  event.preventDefault();
});

// ---- mouse and fingers ----

const fingers = new Map();
let moved = false;

function placeOf(event) {
  const box = lanesBox.getBoundingClientRect();
  return { x: event.clientX - box.left - 1, y: event.clientY - box.top - 1 };
}

lanesBox.addEventListener("pointerdown", event => {
  fingers.set(event.pointerId, placeOf(event));
  scene.marked = event.shiftKey || byId("mark").ariaPressed === "true" ? placeOf(event) : null;
  moved = false;
});
window.addEventListener("pointermove", event => {
  const had = fingers.get(event.pointerId), now = placeOf(event), wide = lanesBox.clientWidth;
  if (!had) return;
  if (Math.abs(now.x - had.x) + Math.abs(now.y - had.y) < 3 && !moved) return;
  if (!moved && event.target === canvas) lanesBox.setPointerCapture(event.pointerId);
  moved = true;
  if (scene.marked) { areaBetween(scene.marked, now, false); return; }
  lanesBox.classList.add("drag");
  if (fingers.size === 1) {
    pan((had.x - now.x) / wide);
    if (event.pointerType === "mouse") lanesBox.scrollTop += had.y - now.y;
  } else {
    const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
    zoom(Math.min(4, Math.max(0.25, Math.abs(had.x - other.x) / Math.max(8, Math.abs(now.x - other.x)))), other.x / wide);
  }
  fingers.set(event.pointerId, now);
});
for (const kind of ["pointerup", "pointercancel"]) window.addEventListener(kind, event => {
  const had = fingers.delete(event.pointerId);
  if (had && !moved && kind === "pointerup") { const { x, y } = placeOf(event); pick(eventAt(x, y)); }
  else if (had && scene.marked) areaBetween(scene.marked, placeOf(event), true);
  lanesBox.classList.remove("drag");
});
lanesBox.addEventListener("dblclick", zoomToPicked);
lanesBox.addEventListener("wheel", event => {
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), placeOf(event).x / lanesBox.clientWidth);
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / lanesBox.clientWidth);
  else return;
  event.preventDefault();
}, { passive: false });
lanesBox.addEventListener("scroll", redraw);
lanesBox.addEventListener("mousemove", event => {
  const tip = byId("tip"), { x, y } = placeOf(event), i = fingers.size ? -1 : eventAt(x, y);
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.textContent = `${eventName(view.trace, i)} · ${timeText(view.trace.span[i])}`;
  tipPlace(event);
});
lanesBox.addEventListener("mouseleave", () => { byId("tip").hidden = true; });

// ---- search ----

function matchesMake(wanted) {
  const trace = view.trace, names = new Set(), low = wanted.toLowerCase();
  scene.hit = -1;
  scene.hits = null;
  scene.matches = [];
  if (low) {
    trace.texts.forEach((text, i) => { if (text.toLowerCase().includes(low)) names.add(i); });
    for (let i = 0; i < trace.name.length; i++) if (names.has(trace.name[i])) scene.matches.push(i);
    scene.matches.sort((a, b) => trace.start[a] - trace.start[b]);
    scene.hits = names;
  }
  byId("matches").textContent = low ? `${countText(scene.matches.length)} events` : "";
  redraw();
}

function matchGo(by) {
  const n = scene.matches ? scene.matches.length : 0;
  if (!n) return;
  scene.hit = scene.hit < 0 ? Math.max(0, scene.matches.findIndex(i => view.trace.start[i] >= scene.from)) : (scene.hit + by + n) % n;
  byId("matches").textContent = `${countText(scene.hit + 1)} of ${countText(n)} events`;
  pick(scene.matches[scene.hit], true);
}

function searchFor(name) {
  byId("find").value = name;
  matchesMake(name);
  matchGo(1);
  byId("timeline").scrollIntoView();
  lanesBox.focus({ preventScroll: true });
}

byId("find").oninput = () => matchesMake(byId("find").value);
byId("find").onkeydown = event => {
  if (event.key === "Enter") matchGo(event.shiftKey ? -1 : 1);
  if (event.key === "Escape") { byId("find").value = ""; matchesMake(""); lanesBox.focus(); }
};
byId("next").onclick = () => matchGo(1);
byId("before").onclick = () => matchGo(-1);
byId("closer").onclick = () => zoom(0.6);
byId("farther").onclick = () => zoom(1 / 0.6);
byId("fit").onclick = fitAll;

onChange((trace, range) => {
  coloursMake();
  if (scene.of !== trace) {
    scene.of = trace;
    laneTops(trace);
    timelineLegend(trace);
    lanesBox.scrollTop = 0;
    pick(-1);
    areaSet(null);
    matchesMake(byId("find").value);
  }
  if (scene.range !== range) { scene.range = range; fitAll(); }
  redraw();
}, "timeline");
new ResizeObserver(redraw).observe(lanesBox);
window.kprofFrames = scene.frames;
