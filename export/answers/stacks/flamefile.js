// flamefile.js - what a flame graph has as a file of its own: title, legend, search in the drawing
(() => {
  const id = name => document.getElementById(name), svg = document.querySelector("svg"), SIDE = 10, LETTER = 7.25;
  const title = id("title").textContent, total = id("total").textContent;
  let typing = false, query = "", wide = 1200;
  // As many rows as the window needs; returns where they end.
  function legend(y) {
    let x = SIDE;
    for (const g of document.querySelectorAll("g.l")) {
      const needs = 17 + g.querySelector("text").textContent.length * LETTER + 24;
      if (x > SIDE && x + needs > wide) { x = SIDE; y += 18; }
      g.setAttribute("transform", `translate(${x},${y})`);
      x += needs;
    }
    return y + 32;
  }
  // Puts a text into as many lines as the width needs; returns where the last one stands.
  function wrap(name, text, letter, room, y, row) {
    const lines = [""], fits = Math.floor(room / letter);
    for (const word of text.split(" ")) {
      if (lines.at(-1).length + word.length > fits && lines.at(-1)) lines.push("");
      lines[lines.length - 1] += `${word} `;
    }
    id(name).replaceChildren(...lines.map((line, i) => {
      const span = document.createElementNS(svg.namespaceURI, "tspan");
      for (const [key, value] of [["x", SIDE], ["y", y + i * row]]) span.setAttribute(key, value);
      span.textContent = i + 1 < lines.length ? line : line.trimEnd();
      return span;
    }));
    return y + (lines.length - 1) * row;
  }
  function head(width) {
    wide = width;
    const under = wrap("title", title, 9.7, wide - 2 * SIDE - (id("scheme") ? 44 : 0), 22, 20);
    const y = legend(wrap("total", total, LETTER, wide - 2 * SIDE, under + 19, 16) + 13);
    for (const name of ["told", "search", "reset"]) id(name).setAttribute("y", y);
    return y + 10;
  }
  const graph = flameGraph(svg, {
    width: () => svg.clientWidth || document.documentElement.clientWidth || 1200,
    top: head,
    least: () => window.innerHeight || 0,
    tell: text => { if (!typing) tell(text); },
    drawn: isZoomed => { id("reset").style.display = isZoomed ? "" : "none"; },
  });
  function tell(text) { id("told").textContent = graph.cut(text, wide - 130); }
  function find() {
    const said = graph.find(query);
    tell(typing || query ? `search: ${query}${typing ? "_" : ""}${said && `   ${said}`}` : "");
  }
  function ask() { typing = true; query = ""; find(); }
  function typed(event) {
    if (event.key === "Enter") typing = false;
    else if (event.key === "Backspace") query = query.slice(0, -1);
    else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) query += event.key;
    else return;
    event.preventDefault();
    find();
  }
  function escaped() {
    if (typing || query) { typing = false; query = ""; find(); }
    else { graph.choose(null); graph.zoom(null); tell(""); }
  }
  const isPress = event => event.key === "Enter" || event.key === " ";
  window.addEventListener("keydown", event => {
    const at = document.activeElement && document.activeElement.id;
    if (isPress(event) && at === "scheme") return;
    if ((event.ctrlKey || event.metaKey) && event.key === "f") { event.preventDefault(); ask(); }
    else if (event.key === "Escape") escaped();
    else if (typing) typed(event);
    else if (event.key === "/") { event.preventDefault(); ask(); }
    else if (isPress(event) && at === "reset") graph.zoom(null);
    else if (isPress(event) && at === "search") { event.preventDefault(); ask(); }
    else if (graph.key(event.key)) event.preventDefault();
  });
  id("reset").addEventListener("click", () => graph.zoom(null));
  id("search").addEventListener("click", ask);
  window.addEventListener("resize", graph.place);
  graph.set([...document.querySelectorAll("g.b")].map(g => {
    const text = g.querySelector("title").textContent;
    return { g, rect: g.querySelector("rect"), label: g.querySelector("text"),
      x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, text, name: text.replace(/ \([^(]*\)$/, "") };
  }));
})();
