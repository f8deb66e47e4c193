// scheme.js - the button of pages that turns them dark or light; it follows the system until the system changes
(() => {
  const button = document.getElementById("scheme"), wanted = matchMedia("(prefers-color-scheme: dark)"), of = document.documentElement.dataset;
  const set = isDark => {
    of.scheme = isDark ? "dark" : "light";
    button.setAttribute("aria-pressed", isDark);
    document.dispatchEvent(new Event("scheme")); // a canvas has no style
  };
  button.addEventListener("click", () => set(of.scheme !== "dark"));
  wanted.addEventListener("change", () => set(wanted.matches));
  set(wanted.matches);
})();
