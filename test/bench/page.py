#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page - how long a page of `kprof html` takes to open in headless Chromium, and its frames while it is panned

usage: page.py PAGE     with the python of `scripts/venv perfetto`

Prints the page's size, milliseconds until it is ready, and of 200 frames of panning and zooming what each costs: processor time of the page's
thread (script, style, layout, painting), which others on the machine do not lengthen, and the script alone by the clock.
"""
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e/viewers"))
import chromium  # noqa: E402

KEYS = ["w" if i % 40 == 0 else "d" if i % 80 < 40 else "a" for i in range(200)]
FRAME = """const [key, done] = arguments, box = document.getElementById('lanes');
box.dispatchEvent(new KeyboardEvent('keydown', { key }));
requestAnimationFrame(() => setTimeout(done));"""


def busy(driver):
    """Milliseconds of processor time that the page's thread has had."""
    return 1e3 * {m["name"]: m["value"] for m in driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}["TaskDuration"]


def settle(driver):
    """Waits until the page has drawn what it draws when there is time."""
    before = -1000
    while busy(driver) - before > 5:
        before = busy(driver)
        time.sleep(0.3)


def pan(driver):
    """Of each frame the milliseconds of the page's thread; of all the milliseconds of the script."""
    driver.execute_script("window.kprofFrames.length = 0")
    costs, before = [], busy(driver)
    for key in KEYS:
        driver.execute_async_script(FRAME, key)
        after = busy(driver)
        costs.append(after - before)
        before = after
    return costs, driver.execute_script("return [...window.kprofFrames]")


def told(costs):
    costs = sorted(costs)
    return f"median {statistics.median(costs):.1f}, 95 of 100 at most {costs[len(costs) * 95 // 100]:.1f}, longest {costs[-1]:.1f} ms"


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    with chromium.browser() as driver:
        driver.set_window_size(1600, 1000)
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        driver.get(page.as_uri())
        while not driver.execute_script("return document.documentElement.dataset.ready"):
            time.sleep(0.05)
        opened = driver.execute_script("return window.kprofReady")
        until_ready = busy(driver)
        settle(driver)
        costs, script = pan(driver)
        trouble = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    print(f"{page.stat().st_size / 1e6:.1f} MB, ready after {opened:.0f} ms (processor time of the page's thread until then {until_ready:.0f} ms), errors {len(trouble)}")
    print(f"{len(costs)} frames of panning, processor time: {told(costs)}; script by the clock: {told(script)}")


main()
