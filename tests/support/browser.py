"""A headless Chromium of the system, driven by Playwright."""

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable():
    """Path of a Chromium; without one, tests are skipped, but for CI where that would hide them."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = f"none of {', '.join(NAMES)} is installed: make browser"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def chromium():
    """Yield a browser."""
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )  # containers have no sandbox to give
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page opened from a file, and everything it said, asked for, or tried."""

    def __init__(self, browser, path, **context):
        self.said, self.asked, self.tried = [], [], []
        self._context = browser.new_context(**context)
        self.page = self._context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", self._dialog)
        self.page.goto(path.as_uri())
        self.asked.remove(path.as_uri())

    def _dialog(self, dialog):
        self.tried.append(dialog.message)
        dialog.dismiss()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._context.close()

    @property
    def quiet(self):
        """Whether nothing was said, asked for or tried; images inside the page are not asked
        for.
        """
        return (
            not self.said
            and not self.tried
            and not [url for url in self.asked if not url.startswith("data:")]
        )

    def overflow(self):
        """How many pixels the page is wider than its window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
