// steps.js - the steps as bars, each divided by where its time went; a click chooses one, with Shift several
let stepAnchor = 0;

function stepRange(steps, a, b) {
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  const label = low === high ? `Step ${steps[low][0]}` : `Steps ${steps[low][0]} to ${steps[high][0]}`;
  return { from: steps[low][1], to: steps[high][2], low, high, label };
}

// What a bar is divided into: {name, colour, of: ns of step i}. The parts of a training where there are any; else, and of a GPU
// by choice, what computes and what waits.
function divisionsOf(trace, isSplit) {
  const { step_parts: parts, part_names: names, part_order: order, steps } = trace.head;
  if (parts.length && !isSplit) return order.map((part, at) => ({ name: names[part], colour: `var(--f${part})`, of: i => parts[i][at] }));
  return PARTS.map((_, part) => ({ name: partName(part), colour: `var(--p${part})`, of: i => steps[i][3 + part] }));
}
const partName = part => part === 4 && !view.trace.head.gpu ? "no operator runs" : part === 0 && !view.trace.head.gpu ? "operators" : PARTS[part];
const stepNs = step => step[2] - step[1];

function gradientOf(i, divisions, span) {
  const stops = [];
  let at = 0;
  for (const { colour, of } of divisions) {
    const next = at + 100 * of(i) / Math.max(1, span);
    if (next > at) stops.push(`${colour} ${at.toFixed(2)}% ${next.toFixed(2)}%`);
    at = next;
  }
  return `linear-gradient(to top, ${stops.length ? stops.join(", ") : "var(--f0), var(--f0)"})`;
}

function splitText(from, to, divisions) {
  let whole = 0;
  const sums = divisions.map(() => 0);
  for (let i = from; i < to; i++) {
    whole += stepNs(view.trace.head.steps[i]);
    divisions.forEach(({ of }, k) => { sums[k] += of(i); });
  }
  return divisions.map(({ name }, k) => [name, sums[k]]).filter(([, ns]) => ns > 0)
    .map(([name, ns]) => `${name} ${timeText(ns / (to - from))} (${percentText(ns / (whole || 1))})`).join(", ");
}

function barMake(steps, i, high) {
  const span = stepNs(steps[i]), told = `Step ${steps[i][0]}: ${timeText(span)}; ${splitText(i, i + 1, chart.divisions)}`;
  const bar = make("button", { type: "button", title: told, ariaLabel: told, tabIndex: i ? -1 : 0 }), fill = make("i"), number = make("span", { textContent: steps[i][0] });
  fill.style.height = `${100 * span / high}%`;
  fill.style.background = gradientOf(i, chart.divisions, span);
  bar.append(fill, number);
  bar.onclick = event => stepChoose(event.shiftKey ? stepAnchor : i, i);
  return bar;
}

function stepChoose(a, b) {
  const steps = view.trace.head.steps, range = stepRange(steps, a, b), now = view.range;
  stepAnchor = a;
  rangeSet(now.low === range.low && now.high === range.high ? null : range);
}

// Lines at round times; the median has one of its own.
function axisDraw(high, tick) {
  const line = (ns, kind, text) => {
    const mark = make("div", { className: kind }, make("span", { textContent: text }));
    mark.style.bottom = `${100 * ns / high}%`;
    return mark;
  };
  const { median } = view.trace.head.advice, lines = [];
  for (let ns = 0; ns <= high * 1.0001; ns += tick) lines.push(line(ns, "tick", axisText(ns, high, tick)));
  if (median > 0 && view.trace.head.steps.length > 1) lines.push(line(median, "median", `median ${timeText(median)}`));
  byId("axis").replaceChildren(...lines);
}

// Numbers stand below as many bars as have room for one.
function numbersPlace() {
  const bars = [...byId("bars").children], apart = tickOf(Math.max(1, 34 * bars.length / (byId("bars").clientWidth || 800)));
  bars.forEach((bar, i) => bar.classList.toggle("named", i % Math.max(1, apart) === 0));
}

const chart = { isSplit: false, divisions: [] };

function stepsBuild(trace) {
  const steps = trace.head.steps, longest = steps.reduce((most, step) => Math.max(most, stepNs(step)), 1), tick = tickOf(longest / 4);
  const high = Math.ceil(longest / tick - 1e-9) * tick, hasBoth = trace.head.step_parts.length > 0 && trace.head.gpu;
  chart.divisions = divisionsOf(trace, chart.isSplit);
  byId("legend").replaceChildren(...chart.divisions.filter(({ of }) => steps.some((_, i) => of(i) > 0)).map(({ name, colour }) => make("span", {}, swatch(colour), name)));
  byId("steps-by").replaceChildren(...(hasBoth ? ["Host", "GPU"] : []).map((name, i) => make("button", { type: "button", textContent: name,
    ariaPressed: chart.isSplit === !!i, onclick: () => { chart.isSplit = !!i; stepsBuild(trace); stepsChosen(trace, view.range); } })));
  axisDraw(high, tick);
  byId("bars").replaceChildren(...steps.map((_, i) => barMake(steps, i, high)));
  numbersPlace();
  byId("steps-note").textContent = (trace.head.by_optimizer ? "A step lasts from one call of the optimizer's step() to the next. " : "") +
    (trace.head.by_passes ? "A step lasts from the end of its backward passes to that of the next step's. " : "") +
    "Click a step to have all views below show it. Shift adds steps to it.";
  byId("steps-table").replaceChildren();
  tableMake(byId("steps-table"), [{ key: "name", title: "Step" }, { key: "time", title: "Time", format: timeText, share: true },
    ...chart.divisions.map(({ name }, k) => ({ key: `part${k}`, title: name[0].toUpperCase() + name.slice(1), format: ns => (ns ? timeText(ns) : "") }))],
    "time", row => stepChoose(row.index, row.index))(steps.map((step, i) => ({ name: `Step ${step[0]}`, index: i, time: stepNs(step),
    ...Object.fromEntries(chart.divisions.map(({ of }, k) => [`part${k}`, of(i)])) })));
  view.stepsOf = trace;
}

function stepsChosen(trace, range) {
  const steps = trace.head.steps, bars = byId("bars"), isAll = range.low === undefined;
  bars.classList.toggle("chosen", !isAll);
  bars.classList.toggle("one", !isAll && range.low === range.high);
  [...bars.children].forEach((bar, i) => bar.setAttribute("aria-pressed", i >= range.low && i <= range.high));
  byId("split").textContent = steps.length ? `${isAll ? "Average step" : range.label}: ${splitText(isAll ? 0 : range.low, isAll ? steps.length : range.high + 1, chart.divisions)}` : "";
}

onChange((trace, range) => {
  const there = trace.head.steps.length > 0;
  byId("steps-none").hidden = there;
  byId("steps-there").hidden = !there;
  if (view.stepsOf !== trace) stepsBuild(trace);
  stepsChosen(trace, range);
});
new ResizeObserver(numbersPlace).observe(byId("bars"));

byId("bars").addEventListener("keydown", event => {
  const bars = [...event.currentTarget.children], at = bars.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: bars.length - 1 }[event.key];
  if (at < 0 || to === undefined || !bars[to]) return;
  event.preventDefault();
  bars[at].tabIndex = -1;
  bars[to].tabIndex = 0;
  bars[to].focus();
});

// ---- the tables ----

const ops = { isPython: false };
const opsTableMake = figures => tableMake(document.querySelector("#operators .table"), [
  { key: "name", title: "Name" }, { key: "self", title: "Self", format: timeText, share: true }, { key: "share", title: "Self %", format: share => (100 * share).toFixed(1) },
  { key: "each", title: "Self a step", format: blankText }, { key: "total", title: "Total", format: timeText },
  { key: "gpu", title: "GPU", format: ns => (ns ? timeText(ns) : ""), share: true, gpu: true }, { key: "count", title: "Calls", format: countText },
  ...figures.filter(([key]) => !["self", "total", "gpu", "count"].includes(key)).map(([key]) => ({ key, title: key[0].toUpperCase() + key.slice(1), format: blankText })),
  { key: "line", title: "Hottest line", line: true }],
  "self", row => searchFor(row.name));

// Functions of Python stand apart from operators.
function opsDraw(trace, range) {
  const isPython = trace.python ||= kindsOfNames(trace, 2, 2), rows = opsIn(trace, range), whole = range.all ? trace.head.run.wall : range.to - range.from;
  const steps = range.low === undefined ? 0 : range.high - range.low + 1, counts = [0, 0];
  for (const row of rows) counts[+!!isPython[row.text]]++;
  if (!counts[+ops.isPython]) ops.isPython = !counts[0];
  byId("ops-kinds").replaceChildren(...(counts[0] && counts[1] ? ["Operators", "Python functions"] : []).map((name, i) => make("button", { type: "button",
    textContent: `${name} ${countText(counts[i])}`, ariaPressed: ops.isPython === !!i, onclick: () => { ops.isPython = !!i; opsDraw(trace, range); } })));
  ops.table ||= opsTableMake(trace.head.row_figures);
  ops.table(rows.filter(row => !!isPython[row.text] === ops.isPython).map(row => ({ ...row, share: row.self / (whole || 1), each: steps ? row.self / steps : 0 })));
}

const kernelsTable = tableMake(document.querySelector("#kernels .table"), [
  { key: "name", title: "Name" }, { key: "total", title: "Time", format: timeText, share: true }, { key: "count", title: "Times", format: countText },
  { key: "mean", title: "Mean", format: timeText }, { key: "longest", title: "Longest", format: timeText }, { key: "kind", title: "Kind" }],
  "total", row => searchFor(row.name));
onChange((trace, range) => {
  opsDraw(trace, range);
  const kernels = kernelsIn(trace, range);
  byId("kernels-none").hidden = kernels.length > 0;
  byId("kernels-there").hidden = !kernels.length;
  kernelsTable(kernels);
}, "operators");
