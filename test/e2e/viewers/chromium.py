# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium for a test: started with patience, with a home of its own, and with limits that only what hangs runs into."""
import contextlib
import os
import shutil
import tempfile
import time

from selenium import webdriver
from selenium.common.exceptions import WebDriverException

LONG = 900  # seconds
# Perfetto's engine is WebAssembly that answers a few questions: its first compiler is enough, and spares a quarter of all.
FLAGS = ("--headless=new", "--js-flags=--liftoff-only", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server", "--no-first-run")


def started(folder, options):
    """ChromeDriver gives a browser 60 s to start, Selenium gives ChromeDriver 30: on a machine that is busy the second time is quicker."""
    home = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
    for again in (True, True, True, True, False):
        try:
            return webdriver.Chrome(service=webdriver.ChromeService(shutil.which("chromedriver"), env=home), options=options)
        except WebDriverException:
            if not again:
                raise
            time.sleep(2)


@contextlib.contextmanager
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        driver = started(folder, options)
        try:
            driver.command_executor.client_config.timeout = LONG
            driver.set_script_timeout(LONG)
            driver.set_page_load_timeout(LONG)
            yield driver
        finally:
            driver.quit()
