# SPDX-License-Identifier: Apache-2.0
"""Uses a flame graph in headless Chromium as a reader would: clicks a frame, goes back with Escape, searches, searches badly, and resets.

asked(driver, SVG, FRAME, PATTERN) has {"all", "zoomed", "told", "back", "found", "hits", "refused", "unfound", "reset", "console"}: what is drawn
(name -> width) then, what it told. FRAME is the beginning of a frame's name.
"""
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

DRAWN = """return [].slice.call(document.querySelectorAll('g.b')).filter(g => g.style.display !== 'none').map(g =>
  [g.querySelector('title').textContent, +g.querySelector('rect').getAttribute('width'), +g.dataset.x, +g.dataset.w]);"""
HITS = "return [].slice.call(document.querySelectorAll('g.hit title')).map(t => t.textContent);"


def search(driver, pattern):
    """Types a pattern after / and returns what the graph says of it."""
    ActionChains(driver).send_keys("/", pattern, Keys.ENTER).perform()
    return driver.find_element(By.ID, "told").text


def asked(driver, path, frame, pattern):
    said = {}
    driver.get(f"file://{path}")
    said["all"] = driver.execute_script(DRAWN)
    box = next(g for g in driver.find_elements(By.CSS_SELECTOR, "g.b")
               if g.find_element(By.TAG_NAME, "title").get_attribute("textContent").startswith(frame))
    box.find_element(By.TAG_NAME, "rect").click()
    said["zoomed"] = driver.execute_script(DRAWN)
    said["told"] = driver.find_element(By.ID, "told").text
    ActionChains(driver).send_keys(Keys.ESCAPE).perform()
    said["back"] = driver.execute_script(DRAWN)
    said["found"] = search(driver, pattern)
    said["hits"] = driver.execute_script(HITS)
    said["refused"] = search(driver, "(")  # no regular expression: it says so
    said["unfound"] = [search(driver, "no frame is called this"), driver.execute_script(HITS)]
    box.find_element(By.TAG_NAME, "rect").click()
    driver.find_element(By.ID, "reset").click()
    said["reset"] = driver.execute_script(DRAWN)
    said["console"] = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    return said
