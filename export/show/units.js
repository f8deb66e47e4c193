// units.js - times and bytes as text: of pages and of drawings that are files. The sizes are those of `kprof memory`.
function timeText(ns) {
  const size = Math.abs(ns);
  if (size >= 1e10) return `${(ns / 1e9).toFixed(2)} s`;
  if (size >= 1e8) return `${(ns / 1e6).toFixed(1)} ms`;
  if (size >= 1e5) return `${(ns / 1e6).toFixed(3)} ms`;
  return size >= 1000 ? `${(ns / 1e3).toFixed(2)} µs` : `${Math.round(ns)} ns`;
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; Math.abs(bytes) >= 1024 && at < units.length - 1; at++) bytes /= 1024;
  return `${at ? bytes.toFixed(2) : bytes} ${units[at]}`;
}
