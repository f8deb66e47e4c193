// shell.js - what all views share: the chosen trace and range, text of times, the keys
const view = { trace: null, range: null, listeners: [], waiting: [] };
const byId = id => document.getElementById(id);

function make(tag, members, ...children) {
  const element = Object.assign(document.createElement(tag), members || {});
  element.append(...children);
  return element;
}

const percentText = share => `${(100 * share).toFixed(1)} %`;
const countText = count => count.toLocaleString("en");

// The smallest of 1, 2, 5, 10, 20, .. that is no less.
function tickOf(least) {
  const ten = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(n => n * ten).find(n => n >= least * 0.9999) || least;
}

// A time beside others of an axis: all in one unit, with the digits that tell them apart.
function axisText(ns, most, tick) {
  const [size, unit] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : most >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${(ns / size).toFixed(Math.max(0, -Math.floor(Math.log10(tick / size) + 1e-9)))} ${unit}`;
}

// Calls a view again when the trace or the range changes; one with the id of its section when there is time for it.
function onChange(draw, id) { view.listeners.push({ draw, id }); }

const whenIdle = window.requestIdleCallback ? work => requestIdleCallback(work, { timeout: 400 }) : work => setTimeout(work, 20);

// What the window shows is drawn first. Until all is drawn the page is busy.
function waitingDraw(all) {
  const place = one => Math.abs(byId(one.id).getBoundingClientRect().top - innerHeight / 3);
  while (view.waiting.length) {
    view.waiting.sort((a, b) => place(b) - place(a));
    view.waiting.pop().draw(view.trace, view.range);
    if (!all && view.waiting.length) { whenIdle(() => waitingDraw(false)); return; }
  }
  delete document.documentElement.dataset.busy;
}

function rangeSet(range) {
  view.range = range || { from: 0, to: view.trace.end + 1, all: true, label: "" };
  const told = byId("range");
  told.replaceChildren(view.range.all ? "Whole trace" : `${view.range.label}: ${timeText(view.range.to - view.range.from)} of ${timeText(view.trace.end)}`);
  if (!view.range.all) told.append(make("button", { type: "button", id: "all", textContent: "Show the whole trace", onclick: () => rangeSet(null) }));
  const idle = view.waiting.length === 0;
  view.waiting = view.listeners.filter(one => one.id);
  document.documentElement.dataset.busy = "1";
  for (const one of view.listeners) if (!one.id) one.draw(view.trace, view.range);
  if (idle) whenIdle(() => waitingDraw(false));
}

function swatch(colour) {
  const box = make("i", { className: "swatch" });
  box.style.background = colour;
  return box;
}

function tipPlace(event) {
  const tip = byId("tip");
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8))}px`;
}

function show(id, is) {
  byId(id).hidden = !is;
  const link = document.querySelector(`nav a[href="#${id}"]`);
  if (link) link.hidden = !is;
}

// ---- findings ----

function factsDraw(trace) {
  const { run, steps, advice } = trace.head, facts = [["wall time", timeText(run.wall)]];
  byId("run").replaceChildren(run.script || run.program || run.label, make("small", {
    textContent: [run.label, run.host, run.rank && run.ranks > 1 ? `rank ${run.rank} of ${run.ranks}` : "", run.torch ? `torch ${run.torch}` : "",
      run.when_ms > 0 && run.when_ms < 8e15 ? new Date(run.when_ms).toLocaleString("en-GB") : ""].filter(Boolean).join(" · ") }));
  if (steps.length && steps[0][1] > run.wall / 10) facts.push([`before step ${steps[0][0]}`, timeText(steps[0][1])]);
  if (steps.length) facts.push([trace.head.by_optimizer ? "steps measured" : "steps", countText(steps.length)], ["a step (mean)", timeText(advice.step)]);
  if (run.parts) facts.push([run.gpu_parts ? "of a step on the host" : "of a step", run.parts]);
  if (run.gpu_parts) facts.push(["of a step on the GPU", run.gpu_parts]);
  facts.push(["events", countText(trace.name.length)]);
  facts.push(["time 0", "the profiler's start"]);
  if (run.cores > 0) facts.push(["busy threads on cores", `${run.threads || "?"} on ${run.cores}`]);
  if (run.dropped) facts.push(["events dropped", (run.dropped_least ? "at least " : "") + countText(run.dropped)]);
  if (run.torn) facts.push(["file", "cut short"]);
  byId("facts").replaceChildren(...facts.map(([key, value]) => make("div", {}, make("dt", { textContent: key }), make("dd", { textContent: value }))));
}

function cardMake(kind, title, cost, ...texts) {
  return make("article", { className: `card ${kind}` }, make("h3", {}, title, make("span", { textContent: cost })), ...texts);
}

// Memory costs no time.
function costText(finding, steps) {
  const time = finding.once > 0 ? `${timeText(finding.once)} once, in step ${finding.once_step}` : `${timeText(finding.cost)} a step`;
  const cost = finding.cost > 0 ? `${time}, ${percentText(finding.share)} ` : finding.bytes > 0 ? `${bytesText(finding.bytes)} ` : "";
  return `${cost}(${finding.steps} of ${steps} steps)`;
}

// What a trace alone says of its collectives, those of all ranks know better.
function findingsOf({ run, gpu, advice }) {
  const words = ranks.verdict.ranks.find(of => of.rank === run.rank && run.ranks > 1);
  const found = advice.findings.map(f => (words && (words.gpu || !gpu) && f.id === ranks.verdict.id ? { ...f, what: words.what, change: words.change } : f));
  const { late } = ranks.verdict; // no trace alone tells that others wait for its rank
  return late && run.ranks > 1 && late.rank === run.rank ? [{ bytes: 0, once: 0, ...late }, ...found] : found;
}

function findingsDraw(trace) {
  const codeMake = (text, before) => text ? [make("p", {}, before, make("code", { textContent: text }))] : [];
  const { advice } = trace.head, cards = findingsOf(trace.head).map(f => cardMake(f.critical ? "critical" : "", f.what[0].toUpperCase() + f.what.slice(1),
    costText(f, advice.steps), make("p", { textContent: f.change }), ...codeMake(f.where, f.gap ? "before " : ""), ...codeMake(f.line, "")));
  if (advice.missing && !advice.unrecorded) cards.push(cardMake("plain", "Incomplete", "", make("p", { textContent: advice.missing })));
  if (advice.crowded) cards.unshift(cardMake("", "The training waits for CPU cores", "", make("p", { textContent: advice.crowded })));
  if (!cards.length && advice.healthy) cards.push(cardMake("good", "Healthy", "", make("p", { textContent: "The steps compute for at least 90 % of their time." })));
  else if (!cards.length) cards.push(cardMake("plain", "Nothing found", "", make("p", { textContent: "No part of a step passes its bound." })));
  cards.push(...advice.notes.filter(note => note !== advice.crowded).map(note => cardMake("plain", "Note", "", make("p", { textContent: note }))));
  if (advice.unjudged.length) cards.push(cardMake("plain", "Not looked at", "", make("p", { textContent: advice.unjudged.join("; ") })));
  if (advice.seen) cards.push(cardMake("plain", "Seen, small", "", make("p", { textContent: advice.seen })));
  const { ended } = trace.head.run, { stuck } = ranks.verdict; // above all findings: those matter once the program runs to its end
  if (ended) cards.unshift(cardMake("critical", `Ended ${ended}`, "", make("p", { textContent: "What was recorded until then stands below." })));
  if (stuck) cards.unshift(cardMake("critical", "The job stands", "", make("p", { textContent: stuck })));
  byId("cards").replaceChildren(...cards);
}

// ---- start ----

const darkWanted = matchMedia("(prefers-color-scheme: dark)");

function schemeSet(dark) {
  document.documentElement.dataset.scheme = dark ? "dark" : "light";
  byId("scheme").ariaPressed = dark;
  if (view.range) rangeSet(view.range.all ? null : view.range);
}

// The view that the window's top shows is marked in the list of views.
function navFollow() {
  const links = new Map([...document.querySelectorAll("nav a")].map(link => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      const now = links.get(entry.target.id);
      if (!now) continue;
      now.setAttribute("aria-current", "true");
      now.parentNode.scrollTo({ left: now.offsetLeft - now.parentNode.clientWidth / 2 });
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("main > section")) seen.observe(section);
}

// Which views have something to show; the others say what to record.
function holdings(trace) {
  return { steps: trace.head.steps.length > 0, flames: trace.cpuPlace.length > 0, memory: !!trace.head.memory,
    kernels: trace.lanes.some(lane => lane.device), modules: !!trace.module,
    communication: trace.kind.includes(6) || trace.texts.some(text => COLLECTIVE.test(text)) };
}

async function traceShow(element) {
  view.trace = await traceRead(element);
  factsDraw(view.trace);
  findingsDraw(view.trace);
  for (const section of document.querySelectorAll("main > section")) if (section.id !== "ranks") section.hidden = false;
  for (const [id, is] of Object.entries(holdings(view.trace))) document.querySelector(`nav a[href="#${id}"]`).classList.toggle("none", !is);
  const [low, high] = view.trace.head.start || [];
  rangeSet(low === undefined ? null : stepRange(view.trace.head.steps, low, high));
}

function keysListen() {
  document.addEventListener("keydown", event => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); byId("find").focus(); }
    else if (event.key === "Escape" && !event.defaultPrevented && view.range && !view.range.all) rangeSet(null);
  });
}

async function start() {
  const blocks = [...document.querySelectorAll("script.trace")], runs = byId("runs");
  if (!window.DecompressionStream) throw new Error("This browser is too old: Chromium 80, Firefox 113, Safari 16.4 or later shows it.");
  document.querySelector(".runs").hidden = blocks.length < 2;
  runs.onchange = () => traceShow(blocks[runs.value]);
  runs.choose = index => { runs.value = index; return traceShow(blocks[index]); };
  byId("scheme").onclick = () => schemeSet(document.documentElement.dataset.scheme !== "dark");
  darkWanted.addEventListener("change", () => schemeSet(darkWanted.matches));
  schemeSet(darkWanted.matches);
  window.addEventListener("beforeprint", () => waitingDraw(true));
  keysListen();
  await ranksRead();
  runs.append(...ranks.all.map((rank, i) => make("option", { value: i, textContent: rankName(rank, i) })));
  await runs.choose(ranks.first);
  navFollow();
  byId("opening").remove();
  document.documentElement.dataset.ready = "1";
  window.kprofReady = performance.now();
}
