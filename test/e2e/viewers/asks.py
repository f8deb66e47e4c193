# SPDX-License-Identifier: Apache-2.0
"""Puts questions to one headless Chromium, each in a tab of its own.

Reads lines of JSON, [SCRIPT, ARGUMENT...]: a file beside this one or in ../report, and what its asked() is given after the driver.
Prints a line of JSON for each: [what that returned].
"""
import importlib
import json
import pathlib
import sys

import chromium

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "report"))


def fresh_tab(driver):
    """Without what an earlier question stored, and without what the console said then."""
    earlier = driver.current_window_handle
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": "file://", "storageTypes": "all"})
    driver.switch_to.new_window("tab")
    tab = driver.current_window_handle
    driver.switch_to.window(earlier)
    driver.close()
    driver.switch_to.window(tab)
    driver.get_log("browser")


def main():
    with chromium.browser() as driver:
        for line in sys.stdin:
            script, *arguments = json.loads(line)
            fresh_tab(driver)
            print(json.dumps([importlib.import_module(script).asked(driver, *arguments)]), flush=True)


main()
