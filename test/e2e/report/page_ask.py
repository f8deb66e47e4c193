# SPDX-License-Identifier: Apache-2.0
"""Uses a page of kprof html in headless Chromium as a reader would: chooses a step, sorts and searches tables, zooms, goes from event to event.

usage: page_ask.py PAGE SEARCH   SEARCH: a part of a name
prints {"ready", "all", "step", "chosen", ..., "console"}: what the tables show of the whole and of the first step, what else was told
"""
import json
import pathlib
import sys
import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "viewers"))
import chromium  # noqa: E402

ROWS = """const more = document.querySelector('#operators .more'); if (!more.hidden) more.click();
return [...document.querySelectorAll('#operators tbody tr')].map(tr => [...tr.children].map(td => td.textContent));"""
INK = """const c = document.getElementById('canvas'), copy = document.createElement('canvas'), seen = new Set();
copy.width = c.width; copy.height = c.height;
const pen = copy.getContext('2d', { willReadFrequently: true }); pen.drawImage(c, 0, 0);
const d = pen.getImageData(0, 0, c.width, c.height).data;
for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size;"""


def keys(driver, *text):
    ActionChains(driver).send_keys(*text).perform()
    time.sleep(0.1)


def click(driver, element):
    """Away from the head of the page, which stays at the window's top."""
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def asked(driver, path, search):
    said = {}
    driver.set_window_size(1200, 900)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    driver.get(f"file://{path}")
    for _ in range(600):
        said["ready"] = driver.execute_script("return document.documentElement.dataset.ready") == "1"
        if said["ready"]:
            break
        time.sleep(0.1)
    said["title"] = driver.title
    said["scripts"] = driver.execute_script("return document.querySelectorAll('script').length")
    said["foreign"] = driver.execute_script("return document.querySelectorAll('b.evil, img').length + (window.evil ? 1 : 0)")
    said["wide"] = driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    said["findings"] = driver.find_element(By.ID, "cards").text
    said["views"] = [link.get_attribute("hash") for link in driver.find_elements(By.CSS_SELECTOR, "nav a") if link.is_displayed()]
    for link in driver.find_elements(By.CSS_SELECTOR, "nav a"):
        if link.is_displayed():
            link.click()
    said["colours"] = driver.execute_script(INK)
    said["all"] = driver.execute_script(ROWS)
    bars = driver.find_elements(By.CSS_SELECTOR, "#bars button")
    said["bars"] = [bar.get_attribute("aria-label") for bar in bars]
    if bars:
        click(driver, bars[0])
        said["range"] = driver.find_element(By.ID, "range").text
        said["pressed"] = [bar.get_attribute("aria-pressed") for bar in bars]
        said["step"] = driver.execute_script(ROWS)
        keys(driver, Keys.ESCAPE)
        said["back"] = driver.execute_script(ROWS)
    heading = driver.find_elements(By.CSS_SELECTOR, "#operators th button")
    click(driver, next(h for h in heading if h.text.startswith("Calls")))
    said["by calls"] = driver.execute_script(ROWS)
    field = driver.find_element(By.CSS_SELECTOR, "#operators input")
    click(driver, field)
    field.send_keys(search)
    said["searched"] = driver.execute_script(ROWS)
    field.clear()
    timeline(driver, said, search)
    driver.find_element(By.ID, "scheme").click()
    time.sleep(0.2)
    said["turned"] = driver.execute_script(INK)
    said["console"] = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    return said


def timeline(driver, said, search):
    def event():
        return driver.find_element(By.ID, "event").text

    driver.execute_script("document.getElementById('lanes').focus()")
    keys(driver, Keys.ARROW_RIGHT)
    said["first"] = event()
    keys(driver, Keys.ARROW_DOWN)
    said["inside"] = event()
    keys(driver, Keys.ARROW_UP)
    said["outside"] = event()
    keys(driver, Keys.ENTER, "w", "d", "a", "s", "0", Keys.ESCAPE)
    said["unpicked"] = event()
    keys(driver, "/", search, Keys.ENTER)
    said["matches"] = driver.find_element(By.ID, "matches").text
    said["match"] = event()
    keys(driver, Keys.ESCAPE)


def main():
    path, search = sys.argv[1:]
    with chromium.browser(log=True) as driver:
        print(json.dumps(asked(driver, path, search)))


main()
