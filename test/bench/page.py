#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page - how long a page of `kprof html` takes to open in headless Chromium, and its frames while it is panned

usage: page.py PAGE...     with the python of `scripts/venv perfetto`

Prints the page's size, milliseconds until findings and steps are there (ready) and until all views are, each by the clock and as processor time of
the page's thread, which others on the machine do not lengthen. Then of 200 frames of panning and zooming what each costs: processor time (script,
style, layout, painting), and the script alone by the clock. Pages that are compared belong into one run: PAGE OTHER PAGE OTHER.
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


def opened(driver, page, is_there):
    """Opens the page until it says so: milliseconds by the clock, and of processor time. A page counts from what the one before left."""
    driver.get("about:blank")
    before, begun = busy(driver), time.monotonic()
    driver.get(page.as_uri())
    while not driver.execute_script(is_there):
        time.sleep(0.02)
    return 1e3 * (time.monotonic() - begun), busy(driver) - before


def measure(driver, page):
    ready = opened(driver, page, "return document.documentElement.dataset.ready")[1], driver.execute_script("return window.kprofReady")
    whole, until_whole = opened(driver, page, "const of = document.documentElement.dataset; return of.ready && !of.busy")
    settle(driver)
    costs, script = pan(driver)
    trouble = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    print(f"{page.name}, {page.stat().st_size / 1e6:.1f} MB: ready after {ready[1]:.0f} ms (processor time {ready[0]:.0f} ms), "
          f"all drawn after {whole:.0f} ms (processor time {until_whole:.0f} ms), errors {len(trouble)}")
    print(f"  {len(costs)} frames of panning, processor time: {told(costs)}; script by the clock: {told(script)}")


def main():
    with chromium.browser() as driver:
        driver.set_window_size(1600, 1000)
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for page in sys.argv[1:]:
            measure(driver, pathlib.Path(page).resolve())


main()
