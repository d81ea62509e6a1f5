"""A browser without a network, and what it says of a page: errors, requests, widths."""

import json
import os
import shutil
import time

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """Chromium, and the logs of the page that it shows."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, *, fragment="", width=1280, dark=False):
        """Shows a file afresh at a width."""
        driver = self.driver
        driver.get("about:blank")
        self.messages(), self.requests()
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        driver.get(path.resolve().as_uri() + fragment)

    def messages(self):
        """What was written to the console since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that were asked for since it was last asked."""
        entries = (json.loads(entry["message"]) for entry in self.driver.get_log("performance"))
        sent = (entry["message"] for entry in entries)
        return [
            entry["params"]["request"]["url"]
            for entry in sent
            if entry["method"] == "Network.requestWillBeSent"
        ]

    def all(self, selector):
        """The elements of a selector that are shown."""
        found = self.driver.find_elements("css selector", selector)
        return [element for element in found if element.is_displayed()]

    def one(self, selector):
        """The only element of a selector that is shown, once there is just one."""
        (element,) = self.until(lambda: self.all(selector), lambda found: len(found) == 1)
        return element

    def first(self, selector):
        """The first element of a selector that is shown, once there is one."""
        return self.until(lambda: self.all(selector), bool)[0]

    def follow(self, link):
        """Clicks a link to another page and waits until that is there."""
        from selenium.webdriver.support.expected_conditions import staleness_of

        link.click()
        self.until(lambda: staleness_of(link)(self.driver), bool)
        self.wait("return document.readyState === 'complete'")

    def run(self, script, *arguments):
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script, seconds=20):
        """Waits until a script in the page returns something true."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, seconds).until(lambda driver: driver.execute_script(script))

    def until(self, look, fits, seconds=20):
        """What is seen as soon as it fits; some events of a page come after the next command."""
        end = time.monotonic() + seconds
        while not fits(seen := look()):
            assert time.monotonic() < end, f"after {seconds} s there is still: {seen}"
            time.sleep(0.05)
        return seen

    def type(self, *keys):
        """Keys pressed where the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """The browser's process."""
    selenium = pytest.importorskip("selenium.webdriver", reason="make test-browser installs it")
    from selenium.webdriver.chrome.service import Service

    chromium = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    chromedriver = shutil.which(os.environ.get("CHROMEDRIVER", "chromedriver"))
    assert chromium, "there is no chromium; make test-browser installs it"
    assert chromedriver, "there is no chromedriver; make test-browser installs it"
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = selenium.Chrome(options=options, service=Service(chromedriver))
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver):
    """The browser, to open pages with."""
    return Browser(driver)
