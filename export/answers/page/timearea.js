// timearea.js - an area of the timeline that is dragged over, or chosen by M: sums by name and by thread of what is in it
const area = { by: "", sums: null };

// A name's time is its own on a thread, and all of it on a GPU. In its total a name inside itself counts once.
function areaNames(trace, lane, { from, to }, names) {
  const cut = i => Math.min(to, trace.start[i] + trace.span[i]) - Math.max(from, trace.start[i]);
  const isInItself = i => { for (let up = trace.parent[i]; up >= 0; up = trace.parent[up]) if (trace.name[up] === trace.name[i]) return true; return false; };
  for (let i = lane.first; i < lane.first + lane.count && trace.start[i] < to; i++) {
    const whole = cut(i), isWork = lane.device && trace.kind[i] >= 4;
    if (whole < 0 || (!whole && trace.span[i]) || lane.asynchronous || (lane.device && !isWork)) continue;
    const by = isWork ? "GPU work" : trace.kind[i] === 2 ? "Python functions" : "Operators", key = by + trace.name[i];
    const row = names.get(key) || names.set(key, { by, name: trace.name[i], self: 0, total: 0, count: 0 }).get(key);
    row.self += whole;
    row.count++;
    if (isWork || !isInItself(i)) row.total += whole;
    const up = isWork ? -1 : trace.parent[i], above = up >= 0 && names.get((trace.kind[up] === 2 ? "Python functions" : "Operators") + trace.name[up]);
    if (above) above.self -= whole;
  }
}

// How long anything ran on it, and how many events there are.
function areaLane(trace, lane, { from, to }) {
  let busy = 0, end = from, count = 0;
  for (let i = lane.first; i < lane.first + lane.count && trace.start[i] < to; i++) {
    const until = Math.min(to, trace.start[i] + trace.span[i]);
    if (until < from) continue;
    count++;
    busy += Math.max(0, until - Math.max(end, trace.start[i]));
    end = Math.max(end, until);
  }
  return { by: "Threads", label: lane.name, self: busy, total: busy, count };
}

function areaSums(trace, chosen) {
  const names = new Map(), rows = [];
  for (const lane of trace.lanes.slice(chosen.low, chosen.high + 1)) {
    areaNames(trace, lane, chosen, names);
    rows.push(areaLane(trace, lane, chosen));
  }
  return [...[...names.values()].map(row => ({ ...row, label: trace.texts[row.name] || "(no name)" })), ...rows.filter(row => row.count)];
}

const areaTable = tableMake(byId("area-table"), [{ key: "name", title: "Name" }, { key: "self", title: "Self", format: timeText, share: true },
  { key: "part", title: "% of the time", format: part => (100 * part).toFixed(1) }, { key: "total", title: "Total", format: timeText }, { key: "count", title: "Times", format: countText }], "self");

function areaShow(by) {
  const { sums } = area, kinds = ["Operators", "Python functions", "GPU work", "Threads"].filter(kind => sums.some(row => row.by === kind)), span = scene.area.to - scene.area.from;
  area.by = kinds.includes(by) ? by : kinds[0] || "";
  byId("area-kinds").replaceChildren(...kinds.map(kind => make("button", { type: "button", textContent: kind, ariaPressed: kind === area.by, onclick: () => areaShow(kind) })));
  areaTable(sums.filter(row => row.by === area.by).map(row => ({ name: row.label, self: Math.max(0, row.self), part: Math.max(0, row.self) / span, total: row.total, count: row.count })));
}

// null: no area.
function areaSet(chosen, isOver = true) {
  scene.area = chosen;
  redraw();
  byId("area").hidden = !chosen || !isOver;
  if (!chosen || !isOver) return;
  area.sums = areaSums(view.trace, chosen);
  const threads = chosen.high - chosen.low + 1;
  byId("area-told").textContent = `Area: ${timeText(chosen.to - chosen.from)} from ${timeText(chosen.from + view.trace.head.run.zero)}, ${threads === 1 ? "1 thread" : `${threads === view.trace.lanes.length ? "all" : threads} threads`}`;
  areaShow(area.by);
}

// Between two places of the drawing: its time, and the threads that it touches.
function areaBetween(a, b, isOver) {
  const { lanes } = view.trace, scale = (scene.to - scene.from) / lanesBox.clientWidth, [left, right] = [a.x, b.x].sort((x, y) => x - y);
  const [top, bottom] = [a.y, b.y].map(y => y + lanesBox.scrollTop).sort((x, y) => x - y), at = y => Math.max(0, lanes.findLastIndex(lane => lane.top <= y));
  const from = Math.max(0, scene.from + left * scale), to = Math.min(view.trace.end, scene.from + right * scale);
  areaSet(to > from ? { from, to, low: at(top), high: at(bottom) } : null, isOver);
}

// The picked event's time on its thread, else all that is in sight.
function areaOfSight() {
  const { trace } = view, i = scene.picked, lane = i < 0 ? 0 : trace.lanes.indexOf(laneOf(i));
  if (i >= 0) areaSet({ from: trace.start[i], to: trace.start[i] + Math.max(1, trace.span[i]), low: lane, high: lane });
  else areaSet({ from: Math.max(0, scene.from), to: Math.min(scene.to, trace.end), low: 0, high: trace.lanes.length - 1 });
}

byId("area-zoom").onclick = () => windowSet(scene.area.from, scene.area.to);
byId("area-clear").onclick = () => { areaSet(null); lanesBox.focus(); };
byId("mark").onclick = () => { byId("mark").ariaPressed = byId("mark").ariaPressed !== "true"; };
