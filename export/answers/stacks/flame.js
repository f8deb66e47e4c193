// flame.js - a flame graph's boxes: laid out for the window, zoomed, searched, walked by keys. Of a file and of a page.
// box: {x, w: of the whole, d: depth, name, text, g, rect, label}; host.make(box) makes the last three when they are
// wanted. host: {width(), top(width), least(), tell(text), drawn(isZoomed)}.

// What tells names apart is at their end: folders are cut in front, "…/conv.py(560): forward".
function cutText(text, fits) {
  if (text.length <= fits) return text;
  const file = text.match(/^[^ ]*\/([^/ ]+\.py.*)$/), [short, called] = file ? [`…/${file[1]}`, file[1].replace(/^.*\): /, "")] : [text, text];
  if (short.length <= fits) return short;
  return called.length <= fits ? called : `${called.slice(0, fits - 1)}…`;
}

function flameGraph(svg, host) {
  const ROW = 18, SIDE = 10, LETTER = 7.25, LEAST = 0.3;
  let boxes = [], from = 0, width = 1, wide = 1200, top = 0, chosen = null;

  function cut(text, room) {
    const fits = Math.floor(room / LETTER);
    return fits < 3 ? "" : cutText(text, fits);
  }
  const scale = () => (wide - 2 * SIDE) / width;
  const shown = b => (Math.min(b.x + b.w, from + width) - Math.max(b.x, from)) * scale() > (b.g ? 1e-2 : LEAST);
  function draw() {
    for (const b of boxes) {
      if (!shown(b)) { if (b.g) b.g.style.display = "none"; continue; }
      if (!b.g) host.make(b);
      const left = Math.max(b.x, from), right = Math.min(b.x + b.w, from + width), w = (right - left) * scale();
      const x = SIDE + (left - from) * scale(), y = top + b.d * ROW;
      b.g.style.display = "";
      b.g.classList.toggle("up", width < 1 && b.w > width * 1.0000001);
      b.g.classList.toggle("at", b === chosen);
      b.rect.setAttribute("x", x);
      b.rect.setAttribute("y", y);
      b.rect.setAttribute("width", Math.max(w, LEAST));
      b.label.setAttribute("x", x + 3);
      b.label.setAttribute("y", y + ROW - 5);
      b.label.textContent = cut(b.name, w - 4);
    }
    host.drawn(width < 1);
  }
  function place() {
    let deepest = 0;
    wide = Math.max(280, host.width());
    for (const b of boxes) if (b.d > deepest && shown(b)) deepest = b.d;
    top = host.top(wide, cut);
    const height = Math.max(top + 12 + (deepest + 1) * ROW, host.least());
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `0 0 ${wide} ${height}`);
    draw();
  }
  function zoom(b) {
    from = b ? b.x : 0;
    width = b ? b.w : 1;
    place();
  }
  function choose(b) { chosen = b; host.tell(b ? b.text : ""); draw(); }
  // Boxes below a hit do not count twice.
  function find(query, flags = "") {
    let sum = 0, end = -1, hit = null;
    if (query) try { hit = new RegExp(query, flags); } catch (error) { return error.message; }
    const hits = boxes.filter(b => {
      b.hit = !!hit && hit.test(b.name);
      if (b.g) b.g.classList.toggle("hit", b.hit);
      return b.hit;
    });
    for (const b of hits.sort((a, c) => a.x - c.x || c.w - a.w))
      if (b.x + b.w > end) { sum += b.x + b.w - Math.max(b.x, end); end = b.x + b.w; }
    return hit ? `${hits.length} frames, ${(sum * 100).toFixed(2)} %` : "";
  }
  // The widest box one level up or down, or the next beside.
  function near(depth, step) {
    let best = null;
    for (const b of boxes) {
      if (b.d !== depth || !shown(b)) continue;
      const both = Math.min(b.x + b.w, chosen.x + chosen.w) - Math.max(b.x, chosen.x), ahead = (b.x - chosen.x) * step;
      if (step) { if (ahead > 1e-9 && (!best || (best.x - b.x) * step > 0)) best = b; }
      else if (both > 1e-9 && (!best || b.w > best.w)) best = b;
    }
    if (best) choose(best);
  }
  function key(name) {
    if (name === "Enter") { if (chosen) zoom(chosen); return !!chosen; }
    const does = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[name];
    if (!does) return false;
    if (!chosen) choose(boxes[0]);
    else near(chosen.d + does[0], does[1]);
    return true;
  }
  function listen(b) {
    b.g.addEventListener("click", () => { chosen = b; zoom(b); host.tell(b.text); });
    b.g.addEventListener("mouseover", () => host.tell(b.text));
  }
  function set(all) {
    boxes = all;
    chosen = null;
    from = 0;
    width = 1;
    for (const b of boxes) if (b.g) listen(b);
    place();
  }
  return { set, place, zoom, find, key, listen, cut, choose, isZoomed: () => width < 1, chosen: () => chosen };
}
