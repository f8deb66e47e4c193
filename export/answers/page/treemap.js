// treemap.js - modules as nested boxes whose areas are their times; a click goes into a module
const tree = { path: "", rows: [] };

// A row a module: self time of both ways, and the total of each. What is inside a module counts to its backward, as in kprof report --by module.
function modulesIn(trace, range) {
  const parts = range.all ? rowsOfAll(trace, trace.head.modules) : rowsOfSteps(trace, trace.head.step_modules, range, true), rows = new Map(), named = new Map();
  for (const part of parts) {
    const name = part.name || "outside any module", row = rows.get(name) || rows.set(name, { name, self: 0, total: 0, forward: 0, backward: 0, gpu: 0, count: 0 }).get(name);
    row.self += part.self;
    row.gpu += part.gpu;
    if (part.backward) continue;
    row.forward += part.total;
    row.total += part.total;
    row.count += part.count;
  }
  for (const row of rows.values()) named.set(pathOf(row.name), row);
  for (const part of parts) if (part.backward && part.name) for (let path = pathOf(part.name); path; path = path.slice(0, Math.max(0, path.lastIndexOf(".")))) {
    const row = named.get(path);
    if (row) { row.backward += part.total; row.total += part.total; }
  }
  return [...rows.values()];
}

const pathOf = name => name.replace(/ \([^()]*\)$/, ""); // without torch's name

const moduleName = (trace, key) => forwardName(key ? trace.texts[(key >> 1) - 1] : "outside any module", key & 1);

// {name, path, own, sum, inside: Map}; what runs in no module is left out.
function treeMake(rows, value) {
  const root = { name: "all modules", path: "", own: 0, sum: 0, inside: new Map() };
  for (const row of rows) {
    if (row.name.startsWith("outside any module") || !(value(row) > 0)) continue;
    let at = root;
    root.sum += value(row);
    for (const name of pathOf(row.name).split(".")) {
      const path = at.path ? `${at.path}.${name}` : name;
      if (!at.inside.has(name)) at.inside.set(name, { name, path, own: 0, sum: 0, inside: new Map() });
      at = at.inside.get(name);
      at.sum += value(row);
    }
    at.own += value(row);
  }
  return root;
}

// Squares as square as they go (Bruls, Huizing, van Wijk): rows along the shorter side while their worst box improves.
function squares(items, x, y, w, h, put) {
  const all = items.reduce((sum, item) => sum + item.sum, 0), scale = w * h / all;
  const worst = (row, side) => {
    const sum = row.reduce((a, item) => a + item.sum * scale, 0);
    return Math.max(...row.map(item => { const area = item.sum * scale; return Math.max(side * side * area / (sum * sum), sum * sum / (side * side * area)); }));
  };
  let at = 0;
  while (at < items.length) {
    const side = Math.min(w, h), row = [items[at]];
    while (at + row.length < items.length && worst([...row, items[at + row.length]], side) <= worst(row, side)) row.push(items[at + row.length]);
    const sum = row.reduce((a, item) => a + item.sum * scale, 0), thick = sum / side;
    let along = 0;
    for (const item of row) {
      const long = item.sum * scale / thick;
      if (w >= h) put(item, x, y + along, thick, long); else put(item, x + along, y, long, thick);
      along += long;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
    at += row.length;
  }
}

function treeBox(node, hue, depth, whole, x, y, w, h) {
  const told = `${node.path || node.name}: ${timeText(node.sum)}, ${percentText(node.sum / whole)}`;
  const box = make("button", { type: "button", title: told, ariaLabel: told, className: `box h${hue % 6} d${Math.min(depth, 5)}` });
  box.classList.toggle("tiny", w < 14 || h < 8);
  box.style.cssText = `left:${x}px;top:${y}px;width:${Math.max(0, w - 1)}px;height:${Math.max(0, h - 1)}px`;
  if (w > 34 && h > 15) box.append(make("span", { textContent: node.name }));
  if (w > 70 && h > 34 && !node.inside.size) box.append(make("small", { textContent: `${timeText(node.sum)}, ${percentText(node.sum / whole)}` }));
  box.onclick = event => { event.stopPropagation(); treeGo(node.inside.size ? node.path : ""); };
  if (!node.inside.size) box.onclick = () => { byId("modules-search").value = node.path; byId("modules-search").oninput(); };
  return box;
}

// Colours tell the modules of the first level that has several.
function treeFill(place, node, hue, depth, whole, w, h, isColoured) {
  const inside = [...node.inside.values()].sort((a, b) => b.sum - a.sum);
  if (node.own > 0 && inside.length) inside.push({ name: `${node.name} itself`, path: node.path, sum: node.own, inside: new Map() });
  const colours = !isColoured && inside.length > 1;
  let next = 0;
  squares(inside.filter(item => item.sum > 0), 0, 0, w, h, (item, x, y, wide, high) => {
    if (wide < 1.5 || high < 1.5) return;
    const own = colours ? next++ : hue, box = treeBox(item, own, depth, whole, x, y, wide, high);
    place.append(box);
    if (item.inside.size && wide > 40 && high > 40) {
      const room = make("div", { className: "room" });
      box.append(room);
      treeFill(room, item, own, depth + 1, whole, wide - 9, high - 23, isColoured || colours);
    }
  });
}

function treeAt(root, path) {
  let at = root;
  for (const name of path ? path.split(".") : []) at = at.inside.get(name) || at;
  return at;
}

function treeDraw() {
  const value = view.trace.head.gpu ? row => row.gpu : row => row.self, root = treeMake(tree.rows, value), at = treeAt(root, tree.path), place = byId("treemap");
  byId("modules-none").hidden = root.sum > 0;
  byId("modules-there").hidden = !(root.sum > 0);
  place.replaceChildren();
  if (!(root.sum > 0)) return;
  const names = at.path ? at.path.split(".") : [];
  byId("tree-path").replaceChildren(make("button", { type: "button", textContent: "All modules", onclick: () => treeGo("") }),
    ...names.map((name, i) => make("button", { type: "button", textContent: name, onclick: () => treeGo(names.slice(0, i + 1).join(".")) })),
    make("span", { className: "note", textContent: `${timeText(at.sum)} ${view.trace.head.gpu ? "on GPUs" : "of the host"}, forward and backward` }));
  const inside = at.inside.size ? at : { ...at, inside: new Map([[at.name, at]]), own: 0 };
  treeFill(place, inside, 0, 0, root.sum, place.clientWidth, place.clientHeight, false);
}

function treeGo(path) {
  tree.path = path;
  treeDraw();
}

const modulesTable = tableMake(document.querySelector("#modules .table"), [
  { key: "name", title: "Module" }, { key: "self", title: "Self", format: timeText, share: true }, { key: "forward", title: "Forward", format: blankText }, { key: "backward", title: "Backward", format: blankText }, { key: "total", title: "Total", format: timeText },
  { key: "gpu", title: "GPU", format: ns => (ns ? timeText(ns) : ""), share: true, gpu: true }, { key: "count", title: "Calls", format: countText }], "self", null, "modules-search");

onChange((trace, range) => {
  if (tree.of !== trace) tree.path = "";
  tree.of = trace;
  tree.rows = modulesIn(trace, range);
  modulesTable(tree.rows);
  treeDraw();
}, "modules");
new ResizeObserver(() => { if (tree.of) treeDraw(); }).observe(byId("treemap"));
