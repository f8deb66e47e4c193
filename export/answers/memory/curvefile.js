// curvefile.js - the curves of a file: its data becomes a drawing; the pointer and arrow keys move the moment
(() => {
  const places = [...document.querySelectorAll(".curve")].map(box => {
    const svg = box.matches("svg") ? box : box.querySelector("svg"), data = JSON.parse(box.parentNode.querySelector("[type='application/json'], metadata").textContent);
    const told = box.parentNode.querySelector(".told");
    const c = { ...data, kinds: data.names.length, times: data.slices.map(slice => slice[0]), sums: data.slices.flatMap(slice => slice.slice(1)) };
    c.totals = data.slices.map(slice => slice.slice(1).reduce((sum, bytes) => sum + bytes, 0));
    const curve = memoryCurve(svg, {
      width: () => box === svg ? (document.documentElement.clientWidth || 1000) - 24 : box.clientWidth,
      tell: (slice, text) => {
        told.textContent = text;
        for (const [name, value] of Object.entries({ now: slice, max: data.slices.length - 1, text })) box.setAttribute(`aria-value${name}`, value);
      },
    });
    for (const name of ["pointerdown", "pointermove"]) box.addEventListener(name, event => curve.choose(curve.pointed(event)));
    box.addEventListener("keydown", event => { if (curve.key(event.key)) event.preventDefault(); });
    return { box, curve, data: c };
  });
  // Below each other in a drawing; a page's own flow places them there.
  function place(draw) {
    let y = 0;
    for (const { box, curve, data } of places) {
      const height = draw(curve, data);
      if (!box.matches("svg")) continue;
      box.parentNode.setAttribute("transform", `translate(0,${y})`);
      y += height + 64;
    }
    if (!y) return;
    const root = document.documentElement, width = root.clientWidth || 1000;
    root.setAttribute("viewBox", `0 0 ${width} ${y + 40}`);
    root.setAttribute("height", y + 40);
  }
  place((curve, data) => curve.set(data));
  window.addEventListener("resize", () => place(curve => curve.place()));
  for (const sorry of document.querySelectorAll(".without")) sorry.remove();
})();
