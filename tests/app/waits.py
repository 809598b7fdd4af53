"""Waits that end as soon as what they wait for is there.

Playwright looks after 20, 50, 100 and 100 ms and then every 500 ms: what takes the page 300 ms is
found after 770. Over some hundred waits that is a minute of the suite.
"""

import time

from playwright.sync_api import Locator, Page

_OFTEN, _SELDOM = 25, 100
"""Milliseconds between two looks: of a short wait, and of one for a training."""
_SHORT = 3.0
"""Seconds of a short wait."""
_STATES = {
    "visible": Locator.is_visible,
    "hidden": lambda locator: not locator.is_visible(),
    "attached": lambda locator: locator.count() > 0,
    "detached": lambda locator: locator.count() == 0,
}
_WAIT, _LIMIT = Locator.wait_for, Page.set_default_timeout


def _limit(page: Page, milliseconds: float) -> None:
    page.patience = milliseconds
    _LIMIT(page, milliseconds)


def _wait_for(locator: Locator, *, timeout: float | None = None, state: str = "visible") -> None:
    """Look often; whoever waited in vain gets Playwright's own error, which tells what it saw."""
    patience = getattr(locator.page, "patience", 30_000) if timeout is None else timeout
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < patience / 1000:
        if _STATES[state](locator):
            return
        locator.page.wait_for_timeout(_OFTEN if waited < _SHORT else _SELDOM)
    _WAIT(locator, state=state, timeout=1)


def _wait_for_selector(page: Page, selector: str, **options) -> None:
    _wait_for(page.locator(selector).first, **options)


def look_often(patch) -> None:
    """Make the waits of all pages look often, for as long as the patch lasts."""
    patch.setattr(Page, "set_default_timeout", _limit)
    patch.setattr(Locator, "wait_for", _wait_for)
    patch.setattr(Page, "wait_for_selector", _wait_for_selector)
