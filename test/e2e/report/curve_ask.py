# SPDX-License-Identifier: Apache-2.0
"""Opens drawings of memory in headless Chromium: what the curve of each shows at first, after a key, after a click, in a narrower window.

asked(driver, FILE...) has a list of {"first", "key", "click", "narrow", "console"}, of pages of kprof html, pages and drawings of kprof memory.
"""
import pathlib
import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import chromium

SHOWN = """const box = document.querySelector('.curve'), svg = box.matches('svg') ? box : box.querySelector('svg');
const area = path => { const b = path.getBBox(); return [path.getAttribute('class'), Math.round(b.height)]; };
return { texts: [...svg.querySelectorAll('text')].map(t => t.textContent), areas: [...svg.querySelectorAll('path[class^=m]')].map(area),
  colours: [...svg.querySelectorAll('path[class^=m]')].map(p => getComputedStyle(p).fill), steps: svg.querySelectorAll('.step').length,
  width: Math.round(svg.getBoundingClientRect().width), now: svg.querySelector('.now').getBBox().x, value: box.getAttribute('aria-valuetext'),
  fits: svg.getBoundingClientRect().right <= innerWidth + 1 };"""


def shown(driver):
    limit = time.monotonic() + chromium.LONG
    while driver.execute_script("return !document.querySelector('.curve .now') || !!document.documentElement.dataset.busy"):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return driver.execute_script(SHOWN)


def moved(driver, before):
    """What is shown once the moment is another one: a busy browser draws it later. After 20 s, what is shown all the same."""
    limit = time.monotonic() + 20
    while (said := shown(driver))["now"] == before["now"] and time.monotonic() < limit:
        time.sleep(0.05)
    return said


def window(driver, width):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})


def turned(driver):
    """Whether a click on the button, where there is one, makes the page dark."""
    paper = "return getComputedStyle(document.documentElement.querySelector('body') || document.documentElement).backgroundColor"
    before = driver.execute_script(paper)
    for button in driver.find_elements(By.ID, "scheme"):
        driver.execute_script("arguments[0].click()", button)
    return driver.execute_script(paper) != before


def used(driver, path):
    said = {}
    window(driver, 1100)
    driver.get(pathlib.Path(path).resolve().as_uri())
    said["first"] = shown(driver)
    box = driver.find_element(By.CSS_SELECTOR, ".curve")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", box)
    ActionChains(driver).send_keys(Keys.END).perform()
    said["key"] = moved(driver, said["first"])
    ActionChains(driver).move_to_element(box).click().perform()
    said["click"] = moved(driver, said["key"])
    window(driver, 420)
    time.sleep(0.3)
    said["narrow"] = shown(driver)
    said["turned"] = turned(driver)
    said["console"] = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    return said


def asked(driver, *paths):
    still = {"prefers-color-scheme": "light", "prefers-reduced-motion": "reduce"}  # a click into a page that still scrolls goes elsewhere
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": name, "value": value} for name, value in still.items()]})
    return [used(driver, path) for path in paths]
