// steps.js - the steps as bars, each divided by where its time went; a click chooses one, with Shift several
let stepAnchor = 0;

function stepRange(steps, a, b) {
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  const label = low === high ? `Step ${steps[low][0]}` : `Steps ${steps[low][0]} to ${steps[high][0]}`;
  return { from: steps[low][1], to: steps[high][2], low, high, label };
}

function gradientOf(step) {
  const span = Math.max(1, step[2] - step[1]), stops = [];
  let at = 0;
  for (let part = 0; part < PARTS.length; part++) {
    const next = at + 100 * step[3 + part] / span;
    if (next > at) stops.push(`var(--p${part}) ${at.toFixed(2)}% ${next.toFixed(2)}%`);
    at = next;
  }
  return `linear-gradient(to top, ${stops.length ? stops.join(", ") : "var(--p4), var(--p4)"})`;
}

const partName = part => part === 4 && !view.trace.head.gpu ? "no operator runs" : part === 0 && !view.trace.head.gpu ? "operators" : PARTS[part];

function splitText(steps) {
  const whole = steps.reduce((sum, step) => sum + step[2] - step[1], 0) || 1;
  return PARTS.map((_, part) => [partName(part), steps.reduce((sum, step) => sum + step[3 + part], 0)])
    .filter(([, ns]) => ns > 0).map(([name, ns]) => `${name} ${timeText(ns / steps.length)} (${percentText(ns / whole)})`).join(", ");
}

function barMake(steps, i, longest) {
  const step = steps[i], told = `Step ${step[0]}: ${timeText(step[2] - step[1])}; ${splitText([step])}`;
  const bar = make("button", { type: "button", title: told, ariaLabel: told, tabIndex: i ? -1 : 0 });
  bar.style.height = `${Math.max(1, 100 * (step[2] - step[1]) / longest)}%`;
  bar.style.background = gradientOf(step);
  bar.onclick = event => stepChoose(event.shiftKey ? stepAnchor : i, i);
  return bar;
}

function stepChoose(a, b) {
  const steps = view.trace.head.steps, range = stepRange(steps, a, b), now = view.range;
  stepAnchor = a;
  rangeSet(now.low === range.low && now.high === range.high ? null : range);
}

function stepsBuild(trace) {
  const steps = trace.head.steps, longest = steps.reduce((most, step) => Math.max(most, step[2] - step[1]), 1);
  const used = PARTS.map((_, part) => part).filter(part => steps.some(step => step[3 + part] > 0));
  byId("legend").replaceChildren(...used.map(part => {
    return make("span", {}, swatch(`var(--p${part})`), partName(part));
  }));
  byId("bars").replaceChildren(...steps.map((_, i) => barMake(steps, i, longest)));
  byId("steps-note").textContent = (trace.head.by_optimizer ? "A step lasts from an optimizer's step to its next. " : "") +
    "Click a step, or with Shift several: all below follows.";
  byId("steps-most").textContent = timeText(longest);
  stepsTable(steps.map((step, i) => ({ name: `Step ${step[0]}`, index: i, time: step[2] - step[1],
    ...Object.fromEntries(PARTS.map((part, k) => [part, step[3 + k]])) })));
  view.stepsOf = trace;
}

const stepsTable = tableMake(document.querySelector("#steps .table"), [{ key: "name", title: "Step" }, { key: "time", title: "Time", format: timeText, share: true },
  ...PARTS.map((part, k) => ({ key: part, title: part[0].toUpperCase() + part.slice(1), format: ns => (ns ? timeText(ns) : ""), gpu: k === 1 || k === 2 }))],
  "time", row => stepChoose(row.index, row.index));

onChange((trace, range) => {
  const steps = trace.head.steps, bars = byId("bars");
  byId("steps-none").hidden = steps.length > 0;
  byId("steps-there").hidden = !steps.length;
  if (view.stepsOf !== trace) stepsBuild(trace);
  bars.classList.toggle("chosen", range.low !== undefined);
  [...bars.children].forEach((bar, i) => bar.setAttribute("aria-pressed", i >= range.low && i <= range.high));
  const chosen = range.low === undefined ? steps : steps.slice(range.low, range.high + 1);
  byId("split").textContent = chosen.length ? `${range.low === undefined ? "A mean step" : range.label}: ${splitText(chosen)}` : "";
});

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

const opsTable = tableMake(document.querySelector("#operators .table"), [
  { key: "name", title: "Name" }, { key: "self", title: "Self", format: timeText, share: true }, { key: "total", title: "Total", format: timeText },
  { key: "gpu", title: "GPU", format: ns => (ns ? timeText(ns) : ""), share: true, gpu: true }, { key: "count", title: "Calls", format: countText },
  { key: "line", title: "Line with the most", line: true }], "self", row => searchFor(row.name));
const kernelsTable = tableMake(document.querySelector("#kernels .table"), [
  { key: "name", title: "Name" }, { key: "total", title: "Time", format: timeText, share: true }, { key: "count", title: "Times", format: countText },
  { key: "mean", title: "Mean", format: timeText }, { key: "most", title: "Longest", format: timeText }, { key: "kind", title: "Kind" }],
  "total", row => searchFor(row.name));
onChange((trace, range) => {
  opsTable(opsIn(trace, range));
  const kernels = kernelsIn(trace, range);
  byId("kernels-none").hidden = kernels.length > 0;
  byId("kernels-there").hidden = !kernels.length;
  kernelsTable(kernels);
  document.body.classList.toggle("gpu", !!trace.head.gpu);
});
