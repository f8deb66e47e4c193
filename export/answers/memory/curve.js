// curve.js - bytes over time by category: areas, axes, steps, a legend, one moment that is pointed at. Of a page and of files.
// c: {from, span, times, totals, sums: kinds a slice, kinds, names, most, peak: {at, total, of}, steps: [number, at]}. Each of equal
// slices of the time is shown by its highest moment. zero, where it is there, is added to times that are shown. host: {width(), tell(slice, text)}.
function memoryCurve(svg, host) {
  const PLOT = 260, LETTER = 6.6, HEAD = 22, FOOT = 24, ROW = 20, SIDE = 12;
  let c = null, left = 60, top = 0, wide = 1, chosen = 0;
  const put = (tag, members, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(members)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const xOf = at => left + (at - c.from) / c.span * wide;

  // The smallest of 1, 2, 5, 10, .. from `least` on that covers from..to with `most` pieces, and how many digits tell them apart.
  function ticks(from, to, most, least) {
    let apart = least, digits = 0;
    for (let i = 0; apart * most < to - from && i < 100; i++) apart *= [2, 2.5, 2][i % 3];
    for (let part = apart; part < 0.999 && digits < 6; digits++) part *= 10;
    const at = [];
    for (let i = Math.ceil(from / apart - 1e-9); i * apart <= to + apart * 1e-9 && at.length < 100; i++) at.push(i * apart);
    return { at, apart, digits };
  }
  function sizeTicks(most) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (most / 1024 ** unit >= 1024 && unit < units.length - 1) unit++;
    const high = Math.max(1e-9, most / 1024 ** unit), t = ticks(0, high, 6, unit ? 0.01 : 1);
    if (t.at[t.at.length - 1] < high) t.at.push(t.at.length * t.apart);
    return t.at.map(value => ({ value: value * 1024 ** unit, text: `${value.toFixed(t.digits)} ${units[unit]}` }));
  }
  function timeTicks() {
    const zero = c.zero || 0, from = c.from + zero, size = from + c.span >= 1e10 ? 1e9 : c.span >= 1e5 ? 1e6 : 1e3;
    const t = ticks(from / size, (from + c.span) / size, Math.max(2, Math.floor(wide / 100)), 1e-6);
    return t.at.map(value => ({ at: value * size - zero, text: `${value.toFixed(t.digits)} ${{ 1e9: "s", 1e6: "ms", 1e3: "µs" }[size]}` }));
  }
  // Every 1st, 2nd, 5th, 10th, .. of them, so that at most `most` are left.
  function every(all, most) {
    let apart = 1;
    for (let i = 0; apart * most < all.length; i++) apart *= [2, 2.5, 2][i % 3];
    return all.filter((_, i) => i % apart === 0);
  }

  function area(kind, high) {
    const slices = c.totals.length, x = s => (left + s / slices * wide).toFixed(1), y = value => (top + PLOT - value / high * PLOT).toFixed(1);
    const edge = (s, kinds) => { let sum = 0; for (let k = 0; k < kinds; k++) sum += c.sums[s * c.kinds + k]; return sum; };
    let up = `M${x(0)} ${y(edge(0, kind + 1))}`, back = "";
    for (let s = 1; s < slices; s++) if (edge(s, kind + 1) !== edge(s - 1, kind + 1)) up += `H${x(s)}V${y(edge(s, kind + 1))}`;
    for (let s = slices - 1; s > 0; s--) if (edge(s, kind) !== edge(s - 1, kind)) back += `H${x(s)}V${y(edge(s - 1, kind))}`;
    return put("path", { class: `m${kind}`, d: `${up}H${x(slices)}V${y(edge(slices - 1, kind))}${back}H${x(0)}z` });
  }
  const entry = (k, bytes) => `${c.names[k]}: ${bytesText(bytes)}`;
  const room = k => 34 + LETTER * entry(k, c.peak.of[k] || c.most[k]).length;
  // As many rows as the width needs; returns what is drawn and sets where it ends.
  function legend(shown, width) {
    const drawn = [];
    let x = 1, y = 4;
    for (const k of shown) {
      if (x > 1 && x + room(k) > width) { x = 1; y += ROW; }
      drawn.push(put("rect", { class: `m${k}`, x, y, width: 11, height: 11, rx: 2 }), put("text", { x: x + 16, y: y + 10, "data-kind": k }));
      x += room(k);
    }
    top = y + ROW + HEAD;
    return drawn;
  }
  function axes(sizes) {
    const drawn = [], high = sizes[sizes.length - 1].value, bottom = top + PLOT;
    for (const { value, text } of sizes) {
      const y = (bottom - value / high * PLOT).toFixed(1);
      drawn.push(put("path", { class: value ? "line" : "base", d: `M${left} ${y}h${wide}` }), put("text", { x: left - 8, y: +y + 4, "text-anchor": "end" }, text));
    }
    for (const { at, text } of timeTicks()) {
      const x = xOf(at), end = left + wide - LETTER * text.length / 2;
      drawn.push(put("path", { class: "base", d: `M${x.toFixed(1)} ${bottom}v4` }), put("text", { x: Math.min(x, end + SIDE - 2).toFixed(1), y: bottom + 18, "text-anchor": "middle" }, text));
    }
    return drawn;
  }
  function steps() {
    const inside = c.steps.filter(([, at]) => at >= c.from && at < c.from + c.span), lines = every(inside, wide / 12), told = every(lines, wide / 44);
    const widest = told.reduce((most, [number]) => Math.max(most, String(number).length), 0);
    const drawn = lines.map(([, at]) => put("path", { class: "step", d: `M${xOf(at).toFixed(1)} ${top}v${PLOT}` }));
    let free = 0; // where the number before ends
    told.forEach(([number, at], i) => {
      const text = i || widest > 3 ? `${number}` : `step ${number}`, half = LETTER * text.length / 2, x = Math.max(xOf(at), left + (i ? 0 : 18));
      if (x - half < free) return;
      free = x + half + 4;
      drawn.push(put("text", { x: x.toFixed(1), y: top - 10, "text-anchor": "middle" }, text));
    });
    return drawn;
  }

  function place() {
    const width = Math.max(260, Math.floor(host.width())), shown = c.names.map((_, k) => k).filter(k => c.most[k] > 0), sizes = sizeTicks(c.peak.total);
    left = Math.ceil(Math.max(...sizes.map(size => size.text.length)) * LETTER) + 14;
    wide = width - left - SIDE;
    const rows = legend(shown, width), drawn = axes(sizes), height = top + PLOT + FOOT;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    const back = put("rect", { x: 0, y: 0, width, height, "fill-opacity": 0 }); // where nothing is drawn the pointer counts, too
    svg.replaceChildren(back, ...drawn, ...shown.map(k => area(k, sizes[sizes.length - 1].value)), ...steps(), ...rows, put("path", { class: "now" }));
    choose(chosen);
    return height;
  }
  const text = s => `${timeOf(s) === c.peak.at ? "Peak: " : ""}${bytesText(c.totals[s])} at ${timeText(timeOf(s) + (c.zero || 0))}`;
  // The peak is one moment of its slice, and that is what the slice shows.
  const timeOf = s => c.totals[s] === c.peak.total && sliceOf(c.peak.at) === s ? c.peak.at : c.times[s];
  const sliceOf = at => Math.min(c.totals.length - 1, Math.max(0, Math.floor((at - c.from) / c.span * c.totals.length)));
  function choose(s) {
    chosen = Math.min(c.totals.length - 1, Math.max(0, s));
    const x = xOf(timeOf(chosen)).toFixed(1), told = svg.querySelectorAll("[data-kind]");
    svg.querySelector(".now").setAttribute("d", `M${x} ${top - 3}v${PLOT + 3}M${x} ${top}l-5 -6h10z`);
    for (const one of told) one.textContent = entry(+one.dataset.kind, c.sums[chosen * c.kinds + +one.dataset.kind]);
    host.tell(chosen, text(chosen));
  }
  const peak = () => sliceOf(c.peak.at);
  function set(curve) {
    c = curve;
    chosen = peak();
    return place();
  }
  // True: the key moved the moment.
  function key(name) {
    const slices = c.totals.length, by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -Math.round(slices / 10), PageDown: Math.round(slices / 10) }[name];
    const to = by ? chosen + by : { Home: 0, End: slices - 1, p: peak() }[name];
    if (to !== undefined) choose(to);
    return to !== undefined;
  }
  // The slice below the pointer.
  const pointed = event => {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width || 1;
    return Math.min(c.totals.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / scale - left) / wide * c.totals.length)));
  };
  const detail = s => [text(s), ...c.names.map((_, k) => [k, c.sums[s * c.kinds + k]]).filter(([, bytes]) => bytes > 0).map(([k, bytes]) => entry(k, bytes))].join("\n");
  return { set, place, choose, key, pointed, detail, at: () => timeOf(chosen), slice: () => chosen, count: () => c.totals.length };
}
