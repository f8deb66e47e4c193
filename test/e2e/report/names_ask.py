# SPDX-License-Identifier: Apache-2.0
"""Looks at a page of kprof as a screen reader does, by Chromium's accessibility tree, and at three widths.

asked(driver, PAGE) has {"controls": how many there are, "nameless": width and role of those without a name, "cut": widths at which a view's link is cut}
"""
import page_ask

ROLES = {"button", "link", "textbox", "searchbox", "combobox", "slider", "checkbox", "radio", "tab", "DisclosureTriangle", "application", "menuitem", "spinbutton", "table"}
CUT = """const nav = document.querySelector('nav'); if (!nav) return false; const to = nav.getBoundingClientRect().right + 1;
return [...nav.querySelectorAll('a')].some(link => !link.hidden && link.getBoundingClientRect().right > to);"""


def asked(driver, path):
    page_ask.opened(driver, path)
    said = {"controls": 0, "nameless": [], "cut": [], "wide": []}
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
    return said
