# SPDX-License-Identifier: Apache-2.0
"""Looks at a page of kprof as a screen reader does, by Chromium's accessibility tree, at three widths; and goes through it by the Tab key.

asked(driver, PAGE) has {"controls": how many there are, "nameless": width and role of those without a name, "cut": widths at which a view's link is
cut, "wide": at which the page is wider than the window, "unreached": controls that Tab does not come to, "unseen": scheme and control without an
outline when it has the focus, "turned": colours of the paper before and after the button that turns the page dark}
"""
import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import chromium
import page_ask

ROLES = {"button", "link", "textbox", "searchbox", "combobox", "slider", "checkbox", "radio", "tab", "DisclosureTriangle", "application", "menuitem", "spinbutton", "table"}
CUT = """const nav = document.querySelector('nav'); if (!nav) return false; const to = nav.getBoundingClientRect().right + 1;
return [...nav.querySelectorAll('a')].some(link => !link.hidden && link.getBoundingClientRect().right > to);"""
READY = "return document.readyState === 'complete' && (!document.querySelector('script.trace') || document.documentElement.dataset.ready === '1');"
REACHED = """const at = document.activeElement, is = at !== document.body && !at.hasAttribute('data-met'), style = getComputedStyle(at);
at.setAttribute('data-met', ''); return [is, at.outerHTML.slice(0, 80), style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1];"""
UNREACHED = """const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter(e => e.tabIndex >= 0 && e.checkVisibility({ visibilityProperty: true }));
const missed = all.filter(e => !e.hasAttribute('data-met')).map(e => e.outerHTML.slice(0, 80));
document.querySelectorAll('[data-met]').forEach(e => e.removeAttribute('data-met')); return missed;"""
PAPER = "return getComputedStyle(document.body).backgroundColor"


def opened(driver, path):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]})
    driver.get(f"file://{path}")
    limit = time.monotonic() + chromium.LONG
    while not driver.execute_script(READY):
        assert time.monotonic() < limit
        time.sleep(0.05)
    page_ask.settle(driver)


def tabbed(driver, scheme, said):
    """One Tab after another from the page's first control, until none comes to a control that is new."""
    driver.execute_script("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    while True:
        ActionChains(driver).send_keys(Keys.TAB).perform()
        is_new, control, is_seen = driver.execute_script(REACHED)
        if not is_new:
            break
        if not is_seen:
            said["unseen"].append((scheme, control))
    said["unreached"] += driver.execute_script(UNREACHED)


def asked(driver, path):
    said = {"controls": 0, "nameless": [], "cut": [], "wide": [], "unreached": [], "unseen": []}
    opened(driver, path)
    for width in (1600, 1000, 400):
        driver.set_window_size(width, 900)
        page_ask.settle(driver)
        nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        controls = [node for node in nodes if not node.get("ignored") and node.get("role", {}).get("value") in ROLES]
        said["controls"] = max(said["controls"], len(controls))
        said["nameless"] += [(width, node["role"]["value"]) for node in controls if not node.get("name", {}).get("value")]
        if width > 400 and driver.execute_script(CUT):
            said["cut"].append(width)
        if not driver.execute_script("return document.documentElement.scrollWidth <= innerWidth"):
            said["wide"].append(width)
    tabbed(driver, "light", said)
    before = driver.execute_script(PAPER)
    driver.find_element(By.ID, "scheme").send_keys(Keys.ENTER)
    said["turned"] = [before, driver.execute_script(PAPER)]
    tabbed(driver, "dark", said)
    return said
