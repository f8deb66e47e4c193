// table.js - tables that are sorted by their headings and searched
const SHOWN = 10;

// A line of the program without its folders: "backward of …/train.py:12 step".
const lineText = text => text.replace(/(^| )\/\S+\/(?=[^ /]+:\d)/g, "$1…/");
const classOf = column => (column.line ? "line" : column.gpu ? "of-gpu" : "");

// columns: {key, title, format, share: draws a bar, on phones below the name, line: a place in the program, gpu: only with a GPU,
// node: an element, colour: of what it stands for}. A column in which no row has anything is left out.
function tableMake(place, columns, sort, pick, searchId) {
  const state = { rows: [], sort, down: true, search: "", most: SHOWN };
  const search = make("input", { type: "search", placeholder: "Search names", ariaLabel: "Search names of this table" });
  const told = make("span", { className: "note" }), body = make("tbody"), heads = make("tr");
  const more = make("button", { type: "button", className: "more" });
  if (searchId) search.id = searchId;
  told.setAttribute("role", "status");
  for (const column of columns) {
    const button = make("button", { type: "button", textContent: column.title });
    const th = make("th", { scope: "col", className: classOf(column) }, ...(column.colour ? [swatch(column.colour)] : []), button);
    button.onclick = () => {
      state.down = state.sort === column.key ? !state.down : column.key !== "name";
      state.sort = column.key;
      draw();
    };
    heads.append(th);
  }
  search.oninput = () => { state.search = search.value; state.most = SHOWN; draw(); };
  more.onclick = () => { state.most = Infinity; draw(); };
  place.replaceChildren(make("div", { className: "tools" }, search, told),
    make("div", { className: "scroll", tabIndex: 0 }, make("table", { ariaLabel: place.closest("section").querySelector("h2").textContent }, make("thead", {}, heads), body)), more);

  const textOf = (row, column) => column.node ? (row[column.key] ? " " : "") : column.format ? (row[column.key] === undefined ? "" : column.format(row[column.key])) : row[column.key];

  function rowMake(row, sums, empty) {
    const tr = make("tr");
    for (const column of columns) {
      const td = make("td", { className: classOf(column) + (column.share ? " share" : ""), hidden: empty.includes(column) });
      td.dataset.label = column.title;
      if (column.key === "name" && pick) td.append(make("button", { type: "button", textContent: row.name || "(no name)", title: row.name, onclick: () => pick(row) }));
      else if (column.node) td.append(row[column.key] || "");
      else if (column.line) Object.assign(td, { textContent: lineText(row[column.key] || ""), title: row[column.key] || "" });
      else td.textContent = textOf(row, column);
      if (column.share && sums[column.key] > 0) for (const one of tr.style.getPropertyValue("--of") ? [td] : [td, tr]) one.style.setProperty("--of", `${Math.max(0, 100 * row[column.key] / sums[column.key]).toFixed(2)}%`);
      tr.append(td);
    }
    return tr;
  }

  function draw() {
    const wanted = state.search.toLowerCase();
    const rows = state.rows.filter(row => !wanted || row.name.toLowerCase().includes(wanted));
    const sums = {}, sign = state.down ? -1 : 1;
    for (const column of columns) if (column.share) sums[column.key] = state.rows.reduce((sum, row) => sum + row[column.key], 0);
    rows.sort((a, b) => sign * (a[state.sort] < b[state.sort] ? -1 : a[state.sort] > b[state.sort] ? 1 : 0) || (a.name < b.name ? -1 : 1));
    const empty = columns.filter(column => state.rows.length && !state.rows.some(row => textOf(row, column)));
    columns.forEach((column, i) => {
      const th = heads.children[i];
      th.hidden = empty.includes(column);
      if (column.key === state.sort) th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
      th.lastChild.textContent = column.title + (column.key === state.sort ? (state.down ? " ↓" : " ↑") : "");
    });
    body.replaceChildren(...rows.slice(0, state.most).map(row => rowMake(row, sums, empty)));
    told.textContent = `${wanted ? `${rows.length} of ` : ""}${state.rows.length} name${state.rows.length === 1 ? "" : "s"}`;
    more.hidden = rows.length <= state.most;
    more.textContent = `Show all ${rows.length}`;
  }
  return rows => { state.rows = rows; draw(); };
}
