// units.js - times and bytes as text: of pages and of drawings that are files. Times have three digits. The sizes are those of `kprof memory`.
function timeText(ns) {
  const sizes = [1e9, 1e6, 1e3], whole = +ns.toPrecision(3), at = sizes.findIndex(size => Math.abs(whole) >= size);
  if (at < 0) return `${Math.round(ns)} ns`;
  const value = whole / sizes[at], size = Math.abs(value);
  return `${value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)} ${["s", "ms", "µs"][at]}`;
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; Math.abs(bytes) >= 1024 && at < units.length - 1; at++) bytes /= 1024;
  return `${at ? bytes.toFixed(2) : bytes} ${units[at]}`;
}
