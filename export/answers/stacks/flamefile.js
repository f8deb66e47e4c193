// flamefile.js - what a flame graph has as a file of its own: title, legend, search in the drawing
(() => {
  const id = name => document.getElementById(name), svg = document.querySelector("svg"), SIDE = 10, LETTER = 7.25;
  const title = id("title").textContent, total = id("total").textContent;
  let typing = false, query = "", wide = 1200;
  // As many rows as the window needs; returns where they end.
  function legend() {
    let x = SIDE, y = 54;
    for (const g of document.querySelectorAll("g.l")) {
      const needs = 17 + g.querySelector("text").textContent.length * LETTER + 24;
      if (x > SIDE && x + needs > wide) { x = SIDE; y += 18; }
      g.setAttribute("transform", `translate(${x},${y})`);
      x += needs;
    }
    return y + 32;
  }
  function head(width, cut) {
    wide = width;
    const y = legend();
    id("title").textContent = cut(title, (wide - 2 * SIDE) * 0.75);
    id("total").textContent = cut(total, wide - 2 * SIDE);
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
  window.addEventListener("keydown", event => {
    const at = document.activeElement && document.activeElement.id;
    if ((event.ctrlKey || event.metaKey) && event.key === "f") { event.preventDefault(); ask(); }
    else if (event.key === "Escape") escaped();
    else if (typing) typed(event);
    else if (event.key === "/") { event.preventDefault(); ask(); }
    else if (event.key === "Enter" && at === "reset") graph.zoom(null);
    else if (event.key === "Enter" && at === "search") ask();
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
