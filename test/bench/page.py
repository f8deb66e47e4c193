#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page - how long a page of `kprof html` takes to open in headless Chromium, and its frames while it is panned

usage: page.py PAGE     with the python of `scripts/venv perfetto`

Prints the page's size, milliseconds until it is ready, and of 200 frames of panning at five zooms the median and the longest.
"""
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e/viewers"))
import chromium  # noqa: E402

PAN = """const done = arguments[0], frames = window.kprofFrames, box = document.getElementById('lanes');
frames.length = 0;
let left = 200;
function next() {
  if (!left--) return done([...frames]);
  box.dispatchEvent(new KeyboardEvent('keydown', { key: left % 40 ? (left % 80 < 40 ? 'd' : 'a') : 'w' }));
  requestAnimationFrame(next);
}
next();"""


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    with chromium.browser(log=True) as driver:
        driver.set_window_size(1600, 1000)
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        driver.get(page.as_uri())
        while not driver.execute_script("return document.documentElement.dataset.ready"):
            time.sleep(0.05)
        opened = driver.execute_script("return window.kprofReady")
        busy = {m["name"]: m["value"] for m in driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}["TaskDuration"]
        frames = driver.execute_async_script(PAN)
        trouble = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    print(f"{page.stat().st_size / 1e6:.1f} MB, ready after {opened:.0f} ms (processor time of the page's thread until then {1e3 * busy:.0f} ms), frames of panning: median {statistics.median(frames):.1f} ms, "
          f"longest {max(frames):.1f} ms, errors {len(trouble)}")


main()
