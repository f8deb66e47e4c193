# SPDX-License-Identifier: Apache-2.0
"""Uses a page of kprof html in headless Chromium as a reader would: chooses a step, sorts and searches tables, zooms, goes from event to event.

asked(driver, PAGE, SEARCH) has {"ready", "all", "step", "chosen", ..., "console"}: what the tables show of the whole and of the first step, what
else was told. SEARCH is a part of a name. With a part it does that alone: "findings", what the page begins with, or "timeline".
"""
import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import chromium

ROWS = """const rows = () => { const more = document.querySelector('#operators .more'); if (!more.hidden) more.click();
  return [...document.querySelectorAll('#operators tbody tr')].map(tr => [...tr.children].map(td => td.textContent)); };
const kinds = document.querySelectorAll('#ops-kinds button').length, all = kinds ? [] : rows();
for (let i = 0; i < kinds; i++) { document.querySelectorAll('#ops-kinds button')[i].click(); all.push(...rows()); }
if (kinds) document.querySelector('#ops-kinds button').click();
return all;"""
FRAMES = """document.getElementById('frames').open = true; const more = document.querySelector('#flames .more'); if (!more.hidden) more.click();
return [...document.querySelectorAll('#flames tbody tr')].map(tr => [...tr.children].map(td => td.textContent));"""
TABLE = """const box = document.querySelector(arguments[0]), more = box.querySelector('.more'); if (!more.hidden) more.click();
return [...box.querySelectorAll('tbody tr')].map(tr => [...tr.children].map(td => td.textContent));"""
COLOURS = """const of = {}; for (const span of document.querySelectorAll('#legend span, #timeline-legend span, #flame-legend span')) {
  const box = span.querySelector('.swatch'); if (box) (of[span.textContent.replace(/ [\\d.]+ .*/, '')] ||= []).push(getComputedStyle(box).backgroundColor); }
for (const g of document.querySelectorAll('#flame-svg g')) (of[g.textContent] || []).push(getComputedStyle(g.querySelector('rect')).fill);
return of;"""
OUTSIDE = """const map = document.getElementById('treemap').getBoundingClientRect();
return [...document.querySelectorAll('#treemap button')].filter(b => b.getBoundingClientRect().right > map.right + 1 || b.getBoundingClientRect().bottom > map.bottom + 1).map(b => b.title);"""
CALLS = """const row = g => Math.round(g.querySelector('rect').getAttribute('y') / 18);
return [...document.querySelectorAll('#flame-svg g')].filter(g => g.style.display !== 'none').map(g => [row(g), +g.querySelector('rect').getAttribute('width')]);"""
BOXES = "return [...document.querySelectorAll('#treemap button')].map(b => [b.title, b.offsetWidth * b.offsetHeight]);"
LABELS = """return [...document.querySelectorAll('#treemap button')].filter(b => b.querySelector(':scope > .room') && b.querySelector(':scope > span')).map(b =>
  [b.querySelector(':scope > span').textContent, b.querySelector(':scope > span').getBoundingClientRect().bottom <= b.querySelector(':scope > .room').getBoundingClientRect().top + 1]);"""
INK = """const c = document.getElementById('canvas'), copy = document.createElement('canvas'), seen = new Set();
copy.width = c.width; copy.height = c.height;
const pen = copy.getContext('2d', { willReadFrequently: true }); pen.drawImage(c, 0, 0);
const d = pen.getImageData(0, 0, c.width, c.height).data;
for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size;"""


def keys(driver, *text):
    ActionChains(driver).send_keys(*text).perform()
    time.sleep(0.1)
    settle(driver)


def settle(driver):
    """Until the views that are drawn when there is time are drawn."""
    limit = time.monotonic() + chromium.LONG
    while driver.execute_script("return document.documentElement.dataset.busy"):
        assert time.monotonic() < limit
        time.sleep(0.05)


def click(driver, element):
    """Away from the head of the page, which stays at the window's top."""
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()
    settle(driver)


def opened(driver, path):
    """What the page says of itself once it is ready."""
    said = {}
    driver.set_window_size(1200, 900)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    driver.get(f"file://{path}")
    for _ in range(600):
        said["ready"] = driver.execute_script("return document.documentElement.dataset.ready") == "1"
        if said["ready"]:
            break
        time.sleep(0.1)
    settle(driver)
    said["title"] = driver.title
    said["scripts"] = driver.execute_script("return document.querySelectorAll('script').length")
    said["foreign"] = driver.execute_script("return document.querySelectorAll('b.evil, img').length + (window.evil ? 1 : 0)")
    said["wide"] = driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    said["findings"] = driver.find_element(By.ID, "cards").text
    said["facts"] = driver.find_element(By.ID, "facts").text
    said["ranks note"] = driver.find_element(By.ID, "ranks-note").text
    return said


def asked(driver, path, search, part="all"):
    said = opened(driver, path)
    if part == "all":
        links_and_tables(driver, said, search)
    if part in ("all", "timeline"):
        timeline(driver, said, search)
    if part == "all":
        flames(driver, said, search)
        memory(driver, said)
        others(driver, said)
        driver.find_element(By.ID, "scheme").click()
        time.sleep(0.2)
        said["turned"] = driver.execute_script(INK)
    said["console"] = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    return said


def links_and_tables(driver, said, search):
    said["views"] = [link.get_attribute("hash") for link in driver.find_elements(By.CSS_SELECTOR, "nav a") if link.is_displayed()]
    for link in driver.find_elements(By.CSS_SELECTOR, "nav a"):
        if link.is_displayed():
            link.click()
    said["colours"] = driver.execute_script(INK)
    said["all"] = driver.execute_script(ROWS)
    bars = driver.find_elements(By.CSS_SELECTOR, "#bars button")
    said["bars"] = [bar.get_attribute("aria-label") for bar in bars]
    said["axis"] = driver.find_element(By.ID, "axis").text
    said["colours of"] = driver.execute_script(COLOURS)
    if bars:
        click(driver, bars[0])
        said["range"] = driver.find_element(By.ID, "range").text
        said["pressed"] = [bar.get_attribute("aria-pressed") for bar in bars]
        said["step"] = driver.execute_script(ROWS)
        said["step told"] = told(driver)
        said["step modules"] = driver.execute_script(TABLE, "#modules")
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
    area(driver, said)


def area(driver, said):
    """Sums of all that is in sight, of one event, and of what is dragged over."""
    def told():
        return driver.find_element(By.ID, "area-told").text

    driver.execute_script("document.getElementById('lanes').focus()")
    keys(driver, Keys.ESCAPE, Keys.ESCAPE, "0", "m")
    said["area"] = {}
    for i in range(len(driver.find_elements(By.CSS_SELECTOR, "#area-kinds button"))):
        button = driver.find_elements(By.CSS_SELECTOR, "#area-kinds button")[i]
        name = button.text
        click(driver, button)
        said["area"][name] = driver.execute_script(TABLE, "#area")
    driver.execute_script("document.getElementById('lanes').focus()")
    keys(driver, Keys.ESCAPE)
    said["no area"] = not driver.find_element(By.ID, "area").is_displayed()
    keys(driver, Keys.ARROW_RIGHT, "m")
    said["area of"] = [driver.find_element(By.ID, "event").text, told()]
    keys(driver, Keys.ESCAPE, Keys.ESCAPE)
    box = driver.find_element(By.ID, "lanes")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    ActionChains(driver).key_down(Keys.SHIFT).move_to_element_with_offset(box, -100, 0).click_and_hold().move_by_offset(100, 5).move_by_offset(100, 5).release().key_up(Keys.SHIFT).perform()
    said["dragged"] = [told(), driver.execute_script("return 200 / document.getElementById('lanes').clientWidth")]
    keys(driver, Keys.ESCAPE)


def told(driver):
    """What the views say of the chosen time, where they have something."""
    return {name: driver.find_element(By.ID, name).text for name in ("flame-told", "curve-told", "split")}


def flames(driver, said, search):
    said["told"] = told(driver)
    said["metrics"] = {}
    driver.execute_script("document.getElementById('frames').open = true")
    for i in range(len(driver.find_elements(By.CSS_SELECTOR, "#flame-metrics button"))):
        button = driver.find_elements(By.CSS_SELECTOR, "#flame-metrics button")[i]
        click(driver, button)
        name = driver.find_elements(By.CSS_SELECTOR, "#flame-metrics button")[i].text
        time.sleep(0.1)
        said["metrics"][name] = driver.execute_script(FRAMES)
    for button in driver.find_elements(By.CSS_SELECTOR, "#flame-metrics button")[:1]:
        click(driver, button)
    field = driver.find_element(By.ID, "flame-find")
    click(driver, field)
    field.send_keys(search)
    said["flame matches"] = driver.find_element(By.ID, "flame-matches").text
    said["hits"] = len(driver.find_elements(By.CSS_SELECTOR, ".flame g.hit"))
    field.clear()
    driver.execute_script("document.querySelector('.flame').focus()")
    keys(driver, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    said["zoomed"] = driver.find_element(By.ID, "flame-back").is_displayed()
    keys(driver, Keys.ESCAPE)
    said["zoomed back"] = not driver.find_element(By.ID, "flame-back").is_displayed()
    keys(driver, "c")
    said["calls"] = [driver.find_element(By.ID, "flame-note").text, driver.execute_script(CALLS)]
    keys(driver, Keys.ESCAPE)
    said["all frames"] = driver.find_element(By.ID, "flame-note").text


def memory(driver, said):
    said["live"] = []
    curve = driver.find_element(By.ID, "curve")
    if not curve.is_displayed():
        return
    said["live"] = driver.execute_script(TABLE, "#memory")
    driver.execute_script("arguments[0].focus()", curve)
    keys(driver, Keys.HOME)
    said["begin"] = [driver.find_element(By.ID, "curve-told").text, curve.get_attribute("aria-valuetext")]
    keys(driver, "p")
    said["peak"] = driver.find_element(By.ID, "curve-told").text
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", curve)
    ActionChains(driver).move_to_element(curve).perform()
    said["tip"] = driver.find_element(By.ID, "tip").text


def help_opened(driver):
    """What ? shows; Escape closes it, and the chosen time stays."""
    driver.execute_script("document.activeElement.blur()")
    before = driver.find_element(By.ID, "range").text
    keys(driver, "?")
    text = driver.find_element(By.ID, "help").text
    keys(driver, Keys.ESCAPE)
    return text, driver.find_element(By.ID, "help").is_displayed(), before == driver.find_element(By.ID, "range").text


def others(driver, said):
    said["modules"] = driver.execute_script(TABLE, "#modules")
    said["boxes"] = driver.execute_script(BOXES)
    said["outside the map"] = driver.execute_script(OUTSIDE)
    said["labels"] = driver.execute_script(LABELS)
    for box in driver.find_elements(By.CSS_SELECTOR, "#treemap > button")[:1]:
        driver.execute_script("arguments[0].click()", box)
        said["inside"] = driver.execute_script(BOXES)
        driver.execute_script("document.querySelector('#tree-path button').click()")
    said["comm note"] = driver.find_element(By.ID, "comm-note").text
    said["collectives"] = driver.execute_script(TABLE, "#communication")
    said["ranks"] = driver.execute_script(TABLE, "#ranks")
    said["help"] = help_opened(driver)
    said["empty"] = [p.get_attribute("id") for p in driver.find_elements(By.CSS_SELECTOR, ".empty") if p.is_displayed()]
    said["unnamed"] = driver.execute_script("""return [...document.querySelectorAll('button, input, select, [tabindex], section, [role]')]
      .filter(e => !e.closest('[hidden]') && !(e.ariaLabel || e.getAttribute('aria-labelledby') || e.textContent.trim() || e.title || e.labels?.length ||
        ['status'].includes(e.getAttribute('role')))).map(e => e.outerHTML.slice(0, 80))""")
