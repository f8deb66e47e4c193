// ranks.js - collectives of the chosen time; of several ranks, who computes and who waits
const ranks = { all: [], first: 0, verdict: null }; // first: which is shown at first; verdict: what kprof advise says of all
const COLLECTIVE = /^(nccl|gloo|mpi|ucc|xccl):/;

// When work of a device was asked for, as kp_tree_asked_ns() has it: its op began, else its call, else itself.
const askedAt = (trace, i) => trace.start[(trace.op[i] || trace.link[i] || i + 1) - 1];

function collectivesIn(trace, range) {
  const rows = new Map(), onDevice = trace.lanes.some(lane => lane.device && hasKind(trace, lane, 6));
  const isOne = trace.collective ||= Uint8Array.from(trace.texts, text => COLLECTIVE.test(text));
  for (const lane of trace.lanes) {
    if (lane.device !== onDevice) continue;
    for (let i = lane.first; i < lane.first + lane.count; i++) {
      if (onDevice ? trace.kind[i] !== 6 : !isOne[trace.name[i]]) continue;
      const at = onDevice ? askedAt(trace, i) : trace.start[i];
      if (at < range.from || at >= range.to) continue;
      let row = rows.get(trace.name[i]);
      if (!row) rows.set(trace.name[i], row = { name: trace.texts[trace.name[i]], total: 0, count: 0, most: 0, least: Infinity });
      row.total += trace.span[i];
      row.count++;
      row.most = Math.max(row.most, trace.span[i]);
      row.least = Math.min(row.least, trace.span[i]);
    }
  }
  return [...rows.values()].map(row => ({ ...row, mean: row.total / row.count }));
}

function hasKind(trace, lane, kind) {
  for (let i = lane.first; i < lane.first + lane.count; i++) if (trace.kind[i] === kind) return true;
  return false;
}

const commTable = tableMake(document.querySelector("#communication .collectives"), [{ key: "name", title: "Collective" },
  { key: "total", title: "Time", format: timeText, share: true }, { key: "count", title: "Times", format: countText },
  { key: "mean", title: "Mean", format: timeText }, { key: "least", title: "Shortest", format: timeText }, { key: "most", title: "Longest", format: timeText }],
  "total", row => searchFor(row.name));

// ---- between ranks ----

function rankBar(rank, most) {
  const bar = make("i", { className: "split" });
  bar.style.width = `${100 * rank.step / most}%`;
  let at = 0;
  const stops = rank.parts.map((ns, part) => {
    const from = at;
    at += 100 * ns / (rank.step || 1);
    return `var(--p${part}) ${from.toFixed(2)}% ${at.toFixed(2)}%`;
  });
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  return bar;
}

const ranksTable = tableMake(document.querySelector("#ranks .table"), [{ key: "name", title: "Rank" }, { key: "bar", title: "Parts of a step", node: true },
  { key: "step", title: "A step", format: timeText }, { key: "compute", title: "Compute", format: blankText, colour: "var(--p0)" },
  { key: "exposed", title: "Communication", format: blankText, colour: "var(--p1)" }, { key: "copies", title: "Copies", format: blankText, colour: "var(--p2)" },
  { key: "loading", title: "Data loading", format: blankText, colour: "var(--p3)" }, { key: "idle", title: "Idle", format: blankText, colour: "var(--p4)" },
  { key: "waited", title: "Waited in collectives", format: timeText, share: true }, { key: "last", title: "Came last", format: countText }], "waited", row => byId("runs").choose(row.index));

function ranksDraw() {
  const all = ranks.all;
  show("ranks", all.length > 1);
  if (all.length < 2) return;
  const { waits, matched, bandwidth, most: late, missing, left, untold, cause, stuck, stuck_rank: for_it } = ranks.verdict, most = Math.max(1, ...all.map(rank => rank.step));
  const lateAt = late ? all.findIndex(rank => rank.rank === late[0]) : -1;
  const waitedFor = stuck ? all.findIndex(rank => rank.rank === for_it) : missing ? -1 : lateAt;
  ranks.first = Math.max(0, waitedFor); // the others wait for it
  byId("ranks-note").textContent = stuck ? `STUCK: ${stuck}` : missing ? `INCOMPLETE: without ${missing}, the rank that arrived last is unknown.` :
    (late ? `${countText(matched)} collectives are in all ${all.length} traces. The rank that arrives ` +
    `last spends the least time in a collective. The extra time of the others is waiting. ${rankName(all[lateAt], lateAt).replace(/^r/, "R")} arrived last at ${countText(late[1])} of ${late[2] === matched ? "them" : `its ${countText(late[2])}`} (${percentText(late[1] / late[2])}).${bandwidth ? ` Transfers have ${bandwidth.toFixed(1)} GB/s of bus bandwidth.` : ""}${cause ? ` Why: ${cause}.` : ""}` :
    "No collective is in all of these traces.") + (left ? ` ${countText(left)} are not in the traces of all their ranks.` : "") + (untold ? ` The groups of ${countText(untold)} cannot be distinguished.` : "");
  document.querySelector("#ranks .tools").hidden = all.length <= SHOWN;
  ranksTable(all.map((rank, index) => ({ index, name: rankName(rank, index), ...(rank.step ? { bar: rankBar(rank, most), step: rank.step } : {}), compute: rank.parts[0],
    exposed: rank.parts[1], copies: rank.parts[2], loading: rank.parts[3], idle: rank.parts[4], ...(rank.trace === null || missing || !matched ? {} : { waited: waits[rank.trace][0], last: waits[rank.trace][1] }) })));
}

// Of two runs the same rank has its folder in its name.
function rankName(rank, index) {
  const [folder, file] = ["", ...rank.label.split("/")].slice(-2), isTwin = ranks.all.some(other => other !== rank && other.rank === rank.rank && other.host === rank.host);
  return rank.rank === null ? `${index + 1}: ${file}` : `rank ${rank.rank}${rank.host ? ` on ${rank.host}` : ""}${isTwin ? `, ${folder || file}` : ""}`;
}

async function ranksRead() {
  const blocks = [...document.querySelectorAll("script.rank")];
  ranks.verdict = (await blockRead(document.querySelector("script.verdict"))).head;
  ranks.all = (await Promise.all(blocks.map(blockRead))).map(block => block.head);
  ranksDraw();
}

onChange((trace, range) => {
  const rows = collectivesIn(trace, range), steps = trace.head.steps, chosen = range.low === undefined ? steps : steps.slice(range.low, range.high + 1);
  byId("comm-none").hidden = rows.length > 0;
  byId("comm-there").hidden = !rows.length;
  if (!rows.length) return;
  const exposed = chosen.reduce((sum, step) => sum + step[4], 0), whole = chosen.reduce((sum, step) => sum + step[2] - step[1], 0);
  const isAlone = document.querySelectorAll("script.rank").length < 2;
  byId("comm-note").textContent = (whole ? `Collectives take ${timeText(exposed / chosen.length)} of a step (${percentText(exposed / whole)}) while nothing computes. ` : "") +
    (isAlone ? "A collective lasts as long as it waits for other ranks or for the network; the traces of all ranks show which." : "Ranks shows how long each rank waited for the others.");
  commTable(rows);
}, "communication");
