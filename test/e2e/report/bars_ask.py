# SPDX-License-Identifier: Apache-2.0
"""Opens a page of kprof html and measures the bars of its timeline.

asked(driver, PAGE) has {"longest"}: of each line of pixels with a bar, the share of its width that the longest has; widest first, each once
"""
import time

import chromium

RUNS = """const c = document.getElementById('canvas'), copy = document.createElement('canvas'), found = new Set();
copy.width = c.width; copy.height = c.height;
const pen = copy.getContext('2d', { willReadFrequently: true }); pen.drawImage(c, 0, 0);
const d = new Uint32Array(pen.getImageData(0, 0, c.width, c.height).data.buffer), counts = new Map();
for (const p of d) counts.set(p, (counts.get(p) || 0) + 1);
const card = [...counts].sort((a, b) => b[1] - a[1])[0][0];
for (let y = 30; y < c.height; y++) {
  let most = 0, run = 0;
  for (let x = 0; x < c.width; x++) {
    const p = d[y * c.width + x];
    run = p !== card && x && p === d[y * c.width + x - 1] ? run + 1 : 0;
    most = Math.max(most, run);
  }
  if (most > 10) found.add(Math.round(1000 * most / c.width) / 1000);
}
return [...found].sort((a, b) => b - a);"""


def asked(driver, path):
    driver.set_window_size(1200, 900)
    driver.get(f"file://{path}")
    limit = time.monotonic() + chromium.LONG
    while driver.execute_script("return document.documentElement.dataset.ready !== '1' || document.documentElement.dataset.busy"):
        assert time.monotonic() < limit
        time.sleep(0.05)
    time.sleep(1)  # a frame is drawn when there is time
    return {"longest": driver.execute_script(RUNS)}
