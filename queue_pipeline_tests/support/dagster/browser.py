"""A headless Chromium that looks at the UI as a person does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = "chromium"
WIDTH, HEIGHT = 1400, 900
WAIT_MILLISECONDS = 60_000
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # /dev/shm is small in containers.
    "--disable-dev-shm-usage",
]


def find_chromium() -> str | None:
    """The system's Chromium, which scripts/bootstrap installs."""
    return shutil.which(CHROMIUM)


@contextmanager
def browser_page() -> Iterator[Page]:
    """A page of a browser of its own; what goes wrong inside it is for the test to find by what it does not see."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        try:
            context = browser.new_context(
                viewport={"width": WIDTH, "height": HEIGHT}, timezone_id="UTC", locale="en-GB", reduced_motion="reduce"
            )
            context.set_default_timeout(WAIT_MILLISECONDS)
            yield context.new_page()
        finally:
            browser.close()
