// shell.js - what all views share: the chosen trace and range, text of times, the keys
const view = { trace: null, range: null, listeners: [], waiting: [] };
const byId = id => document.getElementById(id);

function make(tag, members, ...children) {
  const element = Object.assign(document.createElement(tag), members || {});
  element.append(...children);
  return element;
}

const percentText = share => `${(100 * share).toFixed(1)} %`;
const blankText = ns => (ns ? timeText(ns) : "");
const countText = count => String(count).replace(/\B(?=(\d{3})+$)/g, ","); // the browser's own way loads a megabyte of languages first

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

// Calls a view again when the trace or the range changes. One with the id of its section shows events: it waits until they are read.
function onChange(draw, id) { view.listeners.push({ draw, id }); }

const whenIdle = window.requestIdleCallback ? work => requestIdleCallback(work, { timeout: 400 }) : work => setTimeout(work, 20);

// What the window shows is drawn first. Until all is drawn the page is busy.
function waitingDraw(all) {
  if (!view.trace.lanes) return;
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
  document.documentElement.dataset.busy = "1";
  for (const one of view.listeners) if (!one.id) one.draw(view.trace, view.range);
  if (view.trace.lanes) eventsDraw();
}

// Draws the views of events: the one that the window shows at once.
function eventsDraw() {
  const isFirst = view.waiting.length === 0;
  view.waiting = view.listeners.filter(one => one.id);
  if (isFirst) waitingDraw(false);
}

// What stands between backquotes is code, and no line ends within a flag.
function proseMake(text) {
  const words = part => part.split(/(--[a-z][\w-]*)/).map((word, i) => (i % 2 ? make("span", { className: "flag", textContent: word }) : word));
  return make("p", {}, ...text.split(/\x60([^\x60]+)\x60/).flatMap((part, i) => (i % 2 ? [make("code", {}, ...words(part))] : words(part))));
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

// The parts of the chosen steps' mean as one bar; their shares are those of the report.
function partsBar(trace) {
  const { run, part_names: names, part_order: order, step_parts: rows } = trace.head, bar = make("div", { className: "stack", role: "img", ariaLabel: run.parts || "" });
  const sums = order.map((_, at) => rows.reduce((sum, row) => sum + row[at], 0)), whole = sums.reduce((a, b) => a + b, 0) || 1;
  const legend = make("div", { className: "legend" });
  order.forEach((part, at) => {
    if (!(sums[at] > 0)) return;
    const piece = make("i", { title: `${names[part]} ${percentText(sums[at] / whole)}` });
    piece.style.cssText = `width:${100 * sums[at] / whole}%;background:var(--f${part})`;
    bar.append(piece);
    legend.append(make("span", {}, swatch(`var(--f${part})`), `${names[part]} ${percentText(sums[at] / whole)}`));
  });
  const most = sums.indexOf(Math.max(...sums));
  return { bar, legend, largest: largestOf(trace, names[order[most]], sums[most], whole) };
}

// The largest part. "other" has no cause: where half of it is communication, or no operator runs, that is the name.
function largestOf({ head: { steps, gpu } }, name, ns, whole) {
  const inside = (name === "other" ? [1, ...(gpu ? [] : [4])] : []).map(part => ({ name: partName(part), ns: steps.reduce((sum, step) => sum + step[3 + part], 0) }));
  const known = inside.sort((a, b) => b.ns - a.ns)[0], of = known && 2 * known.ns >= ns ? known : { name, ns };
  return { name: of.name, share: of.ns / whole, ns: of.ns / (steps.length || 1) };
}

// Of a mean step what waits: on a GPU all in which it has nothing to compute, else loading and other ranks.
function waitingOf(trace) {
  const { steps, gpu } = trace.head, sum = part => steps.reduce((ns, step) => ns + step[3 + part], 0);
  const whole = steps.reduce((ns, step) => ns + step[2] - step[1], 0) || 1, parts = [[1, "communication"], ...(gpu ? [[2, "copies"]] : []), [3, "data loading"], ...(gpu ? [[4, "idle GPU"]] : [])];
  const shares = parts.map(([part, name]) => [name, sum(part) / whole]), all = shares.reduce((a, [, share]) => a + share, 0);
  return { share: all, told: shares.filter(([, share]) => share >= 0.0005).map(([name, share]) => `${name} ${percentText(share)}`).join(", ") || "none for data or other ranks" };
}

// Four numbers: step time, largest part, waiting, the first finding.
function headFacts(trace, parts) {
  const { run, steps, advice } = trace.head, facts = [], card = document.querySelector("#cards h3");
  if (!steps.length) facts.push(["Wall time", timeText(run.wall), "no steps in this trace"]);
  else facts.push(["Step time", timeText(advice.median || advice.step), `median of ${countText(steps.length)} step${steps.length > 1 ? "s" : ""}; mean ${timeText(advice.step)}`]);
  if (trace.head.step_parts.length) facts.push(["Largest part", `${parts.largest.name} ${percentText(parts.largest.share).replace(" ", "\u00a0")}`, `${timeText(parts.largest.ns)} a step`]);
  if (steps.length) { const { share, told } = waitingOf(trace); facts.push(["Waiting", percentText(share), told]); }
  if (card) facts.push(["Top finding", make("a", { href: "#cards", textContent: card.dataset.title }), card.lastChild.textContent || card.nextSibling?.textContent]);
  if (run.dropped) facts.push(["Events dropped", (run.dropped_least ? "at least " : "") + countText(run.dropped), "no room was left for them"]);
  if (run.torn) facts.push(["File", "cut short", "what comes before stands here"]);
  return facts;
}

function factsPut(place, facts) {
  place.replaceChildren(...facts.map(([key, value, small]) => make("div", {}, make("dt", { textContent: key }), make("dd", {}, value), ...(small ? [make("dd", { className: "small", textContent: small })] : []))));
}

// "2026-11-29 21:53:22", as the reader's clock has it.
const whenText = when => new Date(when - when.getTimezoneOffset() * 60000).toISOString().slice(0, 19).replace("T", " ");

function factsDraw(trace) {
  const { run, steps } = trace.head, parts = partsBar(trace), more = [["Wall time", timeText(run.wall)]];
  byId("run").replaceChildren(run.script || run.program || run.label, make("small", {
    textContent: [run.label.split("/").pop(), run.host, run.rank && run.ranks > 1 ? `rank ${run.rank} of ${run.ranks}` : "", run.torch ? `torch ${run.torch}` : "",
      run.when_ms > 0 && run.when_ms < 8e15 ? whenText(new Date(run.when_ms)) : ""].filter(Boolean).join(" · ") }));
  if (steps.length) more.push([trace.head.by_optimizer ? "Steps measured" : "Steps", countText(steps.length)]);
  if (steps.length && steps[0][1] > run.wall / 10) more.push([`Before step ${steps[0][0]}`, timeText(steps[0][1])]);
  if (run.cores > 0) more.push(["Busy threads, cores", `${run.threads || "?"}, ${run.cores}`]);
  more.push(["Events", countText(trace.head.lanes.reduce((sum, lane) => sum + lane[6], 0))], ["Time 0", "the profiler's start"], ["File", run.label]);
  factsPut(byId("facts"), headFacts(trace, parts));
  byId("parts").hidden = !trace.head.step_parts.length;
  byId("parts").replaceChildren(make("p", { className: "note", textContent: run.gpu_parts ? "Average step of the host" : "Average step" }), parts.bar, parts.legend,
    ...(run.gpu_parts ? [make("p", { className: "note", textContent: `On the GPU: ${run.gpu_parts}` })] : []));
  factsPut(byId("more-facts"), more);
}

const LEVELS = { critical: "CRITICAL", warning: "WARNING" };

function cardMake(kind, title, cost, ...texts) {
  const head = make("h3", {}, make("b", { textContent: title }), make("span", { textContent: cost }));
  if (LEVELS[kind]) head.prepend(make("em", { textContent: LEVELS[kind] }), " ");
  head.dataset.title = title;
  return make("article", { className: `card ${kind}` }, head, ...texts);
}

const sentence = text => text[0].toUpperCase() + text.slice(1) + (/[.!?)]$/.test(text) ? "" : ".");

// Memory costs no time.
function costText(finding, steps) {
  const time = finding.once > 0 ? `${timeText(finding.once)} once, in step ${finding.once_step}` : `${timeText(finding.cost)} a step`;
  const cost = finding.cost > 0 ? `${time}, ${percentText(finding.share)} ${finding.share_of ? `${finding.share_of} ` : ""}` : finding.bytes > 0 ? `${bytesText(finding.bytes)} ` : "";
  return `${cost}(${finding.steps} of ${steps} steps)`;
}

// What a trace alone says of a finding of its collectives, those of all ranks know better. null: they know no more.
function wordsOf({ run, gpu }, { id, longer_by }) {
  const words = ranks.verdict.ranks.find(of => of.rank === run.rank && run.ranks > 1 && of.longer_by === longer_by);
  return words && (longer_by || id === ranks.verdict.id) && (words.gpu || !gpu) ? words : null;
}

// Who has the cores that a rank wanted, the traces of all ranks of its machine know better.
function crowdedOf({ run, advice }) {
  const { crowded, crowded_by: by, crowded_by_own: byOwn } = advice, known = run.ranks > 1 && ranks.verdict.cores.find(of => of.rank === run.rank);
  if (!crowded || !known || (byOwn && !known.ranks)) return crowded;
  return `${crowded.slice(0, crowded.length - by.length)}${known.text}${byOwn ? `. ${by}` : ""}`;
}

// Many small collectives are a fault whatever a rank waits for in them.
function smallOf(f, words) {
  const isKept = words && f.small && words.small * f.share >= 0.05;
  return isKept ? { what: f.what, change: f.change, part: words.small } : words;
}

function findingsOf(head) {
  const { run, advice } = head, isCritical = (f, share) => f.critical && (f.longer_by || share >= 0.2);
  const partOf = (f, { what, change, part }) => ({ ...f, what, change, cost: f.cost * part, share: f.share * part, critical: isCritical(f, f.share * part) });
  const told = advice.findings.map(f => [f, smallOf(f, wordsOf(head, f))]);
  const found = told.filter(([, words]) => !words || !words.note).map(([f, words]) => (words ? partOf(f, words) : f));
  const { late } = ranks.verdict; // no trace alone tells that others wait for its rank
  return late && run.ranks > 1 && late.rank === run.rank ? [late, ...found] : found;
}

// What docs/reference/findings.md says of it: a page without a network has the text in place of a link.
function aboutMake({ id, about }) {
  if (!about) return [];
  const parts = about.trim().split(/\n\n|\n(?=- )/).map(part => proseMake(part.replace(/\*\*|^- /g, "").replace(/\s+/g, " ")));
  return [make("details", {}, make("summary", { textContent: `About ${id}` }), ...parts)];
}

function findingsDraw(trace) {
  const codeMake = (text, before) => text ? [make("p", { className: "at" }, `${before} `, make("code", { textContent: text, title: "a click selects it" }))] : [];
  const paragraph = text => proseMake(sentence(text));
  const { advice } = trace.head, found = findingsOf(trace.head), cards = found.map(f => cardMake(f.critical ? "critical" : "warning", f.what[0].toUpperCase() + f.what.slice(1),
    costText(f, advice.steps), proseMake(f.change), ...codeMake(f.where, f.gap ? "before" : "in"), ...codeMake(f.line, "at"), ...aboutMake(f)));
  if (advice.missing && !advice.unrecorded) cards.push(cardMake("plain", "Incomplete", "", proseMake(advice.missing)));
  if (advice.crowded) {
    const card = cardMake("warning", "The training waits for CPU cores", "", paragraph(crowdedOf(trace.head)));
    if (advice.crowded_first && !found.some(f => f.critical)) cards.unshift(card); // the ranks may add a critical finding
    else cards.push(card);
  }
  if (!cards.length && advice.healthy) cards.push(cardMake("good", "Healthy", "", make("p", { textContent: "The steps compute for at least 90 % of their time." })));
  else if (!cards.length) cards.push(cardMake("plain", "Nothing found", "", make("p", { textContent: "No known mistake costs enough to be reported." })));
  advice.notes.forEach((note, i) => {
    if (note === advice.crowded) return;
    const isFirst = note === advice.evaluated_first && !found.some(f => f.critical);
    cards[isFirst ? "unshift" : "push"](cardMake("plain", advice.note_titles[i], "", paragraph(note)));
  });
  for (const words of advice.findings.map(f => smallOf(f, wordsOf(trace.head, f))))
    if (words && words.note) cards.push(cardMake("plain", "Collectives", "", paragraph(words.what)));
  if (advice.unjudged.length) cards.push(cardMake("plain", "Not recorded, so not checked", "", paragraph(advice.unjudged.join("; "))));
  if (advice.seen) cards.push(cardMake("plain", "Seen, small", "", paragraph(advice.seen)));
  const { run } = trace.head, { ended, recorded, out_of_memory: oom } = run, { stuck, stuck_next } = ranks.verdict; // above all findings: those matter once the program runs to its end
  const [how, ...rest] = (ended || "").split("; "), others = rest.filter(text => text !== oom);
  if (stuck) cards.length = 0;
  if (ended) cards.unshift(cardMake("critical", `Ended ${how}`, "", ...others.map(paragraph), paragraph(`below is ${recorded}`)));
  if (oom) cards.unshift(cardMake(ended ? "critical" : "warning", "Out of memory", "", paragraph(oom)));
  if (stuck) cards.unshift(cardMake("critical", `The ${run.ranks > 1 ? "job" : "program"} ${ended ? "was" : "is"} stuck`, "",
    ...[stuck, stuck_next].filter(Boolean).map(paragraph)));
  byId("cards").replaceChildren(...cards);
}

// ---- start ----

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

const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));

// Findings and steps are there before the events are read, and painted.
async function traceShow(index) {
  const [trace, columns] = ["trace", "columns"].map(name => document.querySelectorAll(`script.${name}`)[index]);
  view.trace = await traceRead(trace);
  view.waiting = [];
  findingsDraw(view.trace);
  factsDraw(view.trace);
  document.body.classList.toggle("gpu", !!view.trace.head.gpu);
  for (const id of ["findings", "steps"]) byId(id).hidden = false;
  const [low, high] = view.trace.head.start || [];
  rangeSet(low === undefined ? null : stepRange(view.trace.head.steps, low, high));
  byId("opening").hidden = true;
  document.documentElement.dataset.ready = "1";
  window.kprofReady ||= performance.now();
  await painted();
  await eventsShow(view.trace, columns);
}

async function eventsShow(trace, element) {
  await eventsRead(trace, element);
  if (view.trace !== trace) return; // another one was chosen
  for (const section of document.querySelectorAll("main > section")) if (section.id !== "ranks") section.hidden = false;
  for (const [id, is] of Object.entries(holdings(trace)))
    for (const one of [document.querySelector(`nav a[href="#${id}"]`), byId(id)]) one.classList.toggle("none", !is);
  eventsDraw();
}

function keysListen() {
  document.addEventListener("keydown", event => {
    if (event.target.matches("input, select") || byId("help").open || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); byId("find").focus(); }
    else if (event.key === "?") byId("help").showModal();
    else if (event.key === "Escape" && !event.defaultPrevented && view.range && !view.range.all) rangeSet(null);
  });
}

async function start() {
  const count = document.querySelectorAll("script.trace").length, runs = byId("runs");
  if (!window.DecompressionStream) throw new Error("This browser is too old: Chromium 80, Firefox 113, Safari 16.4 or later shows it.");
  document.querySelector(".runs").hidden = count < 2;
  runs.onchange = () => traceShow(runs.value);
  runs.choose = index => { runs.value = index; return traceShow(index); };
  byId("help-open").onclick = () => byId("help").showModal();
  document.addEventListener("scheme", () => { if (view.range) rangeSet(view.range.all ? null : view.range); });
  window.addEventListener("beforeprint", () => waitingDraw(true));
  keysListen();
  await ranksRead();
  runs.append(...ranks.all.map((rank, i) => make("option", { value: i, textContent: rankName(rank, i) })));
  await runs.choose(ranks.first);
  navFollow();
}
