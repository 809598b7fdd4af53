"""Waits that end as soon as what they wait for is there, and cost little until then.

Playwright looks for an element after 20, 50, 100 and 100 ms and then every 500 ms: what takes the
page 300 ms is found after 770. For a condition it looks at every frame, which keeps the page
drawing frames: 7 % of a core, and each process of the suite waits most of its time. Looking every
25 ms from within the page costs 1 %; asking the browser as often from outside, 20 %.
"""

import re
from pathlib import Path

from playwright.sync_api import Locator, Page
from playwright.sync_api import TimeoutError as WaitedInVain

_OFTEN = 25
"""Milliseconds between two looks."""
_FOREIGN = re.compile(r":visible|:has-text|:text|:nth-match|>>|^(?:text|xpath|role|css)=|^//")
"""Selectors that a page itself does not understand."""
_FOUND = """([selector, any, state]) => {
  const found = [...document.querySelectorAll(selector)];
  if (state === 'attached') return found.length > 0;
  if (state === 'detached') return found.length === 0;
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && element.checkVisibility()
      && getComputedStyle(element).visibility === 'visible';
  };
  const visible = any ? found.some(seen) : found.length > 0 && seen(found[0]);
  return (state === 'visible') === visible;
}"""
_WAIT, _FUNCTION, _LIMIT = Locator.wait_for, Page.wait_for_function, Page.set_default_timeout


def _limit(page: Page, milliseconds: float) -> None:
    page.patience = milliseconds
    _LIMIT(page, milliseconds)


def _wait_for_function(page: Page, expression: str, **options):
    return _FUNCTION(page, expression, **({"polling": _OFTEN} | options))


def _wait_for_selector(
    page: Page, selector: str, *, timeout: float | None = None, state: str = "visible"
) -> None:
    """Whoever waited in vain gets Playwright's own error, which tells what it saw."""
    patience = getattr(page, "patience", 30_000) if timeout is None else timeout
    plain = selector.removesuffix(":visible")
    if _FOREIGN.search(plain):
        _WAIT(page.locator(selector).first, state=state, timeout=patience)
        return
    try:
        _wait_for_function(page, _FOUND, arg=[plain, plain != selector, state], timeout=patience)
    except WaitedInVain:
        _WAIT(page.locator(selector).first, state=state, timeout=1)


def look_often(patch) -> None:
    """Make the waits of all pages look often, for as long as the patch lasts.

    Called before Playwright is started, whose driver reads the environment (``driver.js``).
    """
    patch.setenv("NODE_OPTIONS", f'--require="{Path(__file__).with_name("driver.js").as_posix()}"')
    patch.setattr(Page, "set_default_timeout", _limit)
    patch.setattr(Page, "wait_for_function", _wait_for_function)
    patch.setattr(Page, "wait_for_selector", _wait_for_selector)
