"""Visitors of the page: what they do there, and the tab that one leaves to the next."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Locator, Page
from playwright.sync_api import Error as BrowserError

SETTLED = """() => {
  const view = document.querySelector('.view-predictions').dataset;
  return view.state === 'empty' || (view.state === 'ready' && view.rev === view.asked);
}"""
# What of the page is under way: requests, and timers that end soon. Streams stay open, and clocks
# that begin again when they end (as those of runs) never rest: they are not counted.
COUNT = """(() => {
  if (window.underWay) return; // a tab that another visitor has left has this script already
  const under = window.underWay = { requests: 0, timers: new Set() };
  const { fetch, setTimeout, clearTimeout } = window;
  window.fetch = (...asked) => {
    const path = String(asked[0]?.url ?? asked[0]);
    if (/heartbeat|queue\\/data/.test(path)) return fetch(...asked);
    under.requests += 1;
    return fetch(...asked).finally(() => setTimeout(() => { under.requests -= 1; }, 0));
  };
  let again = false;
  window.setTimeout = (then, delay = 0, ...given) => {
    const counted = !again && delay < 1000 && typeof then === 'function';
    if (!counted) return setTimeout(then, delay, ...given);
    const timer = setTimeout(() => {
      under.timers.delete(timer);
      again = true;
      try { then(...given); } finally { again = false; }
    }, delay);
    under.timers.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => { under.timers.delete(timer); clearTimeout(timer); };
})()"""
RESTS = """() => underWay.requests === 0 && underWay.timers.size === 0
  && !document.querySelector('.figure[data-state=waiting]')"""
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
MIDDLE = """part => {
  const { left, top, width, height } = part.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}"""
PATIENCE = 60_000
"""Milliseconds until a wait is in vain: a busy machine takes ten times as long as a quiet one."""
VISITS = 8
"""Visitors after whom a tab is closed, so that its history stays short (browsers keep 50 steps)."""


@dataclass
class Cloze:
    """The page as a visitor uses it."""

    page: Page
    problems: list[str]
    """Errors of the console and requests to other hosts; the test fails if there are any."""
    hearers: list[tuple] = field(default_factory=list)

    def hear(self, event: str, hearer) -> None:
        """Listen to the page until its visitor leaves."""
        self.page.on(event, hearer)
        self.hearers.append((event, hearer))

    def open(self, address: str) -> None:
        self.page.goto(address)
        # What is open mounts a moment after the sentence block, which some labs hide.
        for view in (".view-chips", ".view-tools", "[id^=tab-][role=tabpanel] .view"):
            self.page.wait_for_selector(f"{view}[data-mounted]", state="attached")
        # Until the link's sentence is there, a press is one on the page's own and is lost.
        self.page.wait_for_function("() => Cloze.mounted && !Cloze.arriving()")

    def write(self, text: str) -> None:
        """Put a text into the sentence block and wait until its chips or its error are there."""
        change = self.page.evaluate("Cloze.sentence.change")
        # What a link holds stands in the box before it is cut: it is waited for, too.
        if self.page.input_value("#sentence-text textarea") != text:
            if self.page.is_visible("#sentence-text textarea"):
                self.page.fill("#sentence-text textarea", text)
            else:  # the open lab does not read it
                self.page.evaluate("text => Cloze.write('sentence-text', text)", text)
            self.page.wait_for_function("old => Cloze.sentence.change !== old", arg=change)
        self.page.wait_for_function(
            "text => Cloze.sentence.text === text || Cloze.sentence.error", arg=text
        )

    def unfold(self, name: str) -> None:
        """Open a fold of the sentence block: Examples, Options or Model."""
        button = self.page.locator(".tools").get_by_role("button", name=name, exact=True)
        if button.get_attribute("aria-expanded") == "false":
            button.click()

    def chip(self, word: str, nth: int = 0):
        return (
            self.page.get_by_role("button", name=word, exact=True)
            .and_(self.page.locator(".chip"))
            .nth(nth)
        )

    def at(self, position: int):
        return self.page.locator(f'.chip[data-position="{position}"]')

    def marked(self) -> list[int]:
        return self.page.evaluate("[...Cloze.sentence.marks.keys()].sort((a, b) => a - b)")

    def settle(self) -> None:
        """Wait until what is shown is the answer to what was asked last."""
        self.page.wait_for_function(SETTLED)

    def rest(self) -> None:
        """Wait until nothing is under way that could still change the page, and it is painted."""
        rest(self.page)

    def rows(self, position: int) -> list[tuple[str, str]]:
        """Raw piece and share of each candidate as shown."""
        buttons = self.page.locator(f'.guess[data-position="{position}"] button.candidate')
        return [
            (button.get_attribute("data-piece"), button.locator(".share").inner_text())
            for button in buttons.all()
        ]

    def numbers(self, root: str) -> list[list]:
        """Rows of the table beside the chart in ``root``, as soon as it shows what it was given."""
        plot = f"{root} .figure[data-state=ready] .js-plotly-plot"
        self.page.wait_for_selector(plot)
        return self.page.locator(plot).first.evaluate("plot => plot.layout.meta.rows")

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def take(box: Locator, option: str | re.Pattern, *, exact: bool = False) -> None:
    """Choose from a dropdown's own list: another list may still be closing.

    The list has a place below or above the box only where the window leaves one.
    """
    box.evaluate("each => each.scrollIntoView({ block: 'center' })")
    box.click()
    options = box.page.locator(f"#{box.get_attribute('aria-controls')}")
    options.get_by_role("option", name=option, exact=exact).click()


def swipe(part: Locator, *stops: tuple[float, float]) -> None:
    """A finger goes down in the middle of a part and over these places, so far away from there."""
    part.evaluate("each => each.scrollIntoView({ block: 'center' })")
    part.page.evaluate(PAINTED)
    x, y = part.evaluate(MIDDLE)
    devtools = part.page.context.new_cdp_session(part.page)

    def touch(kind: str, *points: dict[str, float]) -> None:
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})
        part.page.evaluate(PAINTED)

    touch("touchStart", {"x": x, "y": y})
    for across, down in stops:
        touch("touchMove", {"x": x + across, "y": y + down})
    touch("touchEnd")
    devtools.detach()


def rest(page: Page) -> None:
    """Wait until a page has nothing under way: what has not come by now will not come."""
    for _ in range(2):  # an answer may ask for another one
        page.wait_for_function(RESTS)
        page.evaluate(PAINTED)


def new_page(
    profile: BrowserContext,
    server: str,
    size: tuple[int, int],
    *,
    dark: bool,
    link: str,
) -> Cloze:
    """The page as one sees it who has never been there.

    In the tab that the last visitor has left, where there is one: a new tab is a new process, a
    third of what opening the page costs.
    """
    cloze = Cloze(_tab(profile), [])
    cloze.page.add_init_script(COUNT)
    devtools = profile.new_cdp_session(cloze.page)
    kinds = "cookies,indexeddb,local_storage,service_workers"
    devtools.send("Storage.clearDataForOrigin", {"origin": server, "storageTypes": kinds})
    devtools.detach()
    cloze.page.set_viewport_size({"width": size[0], "height": size[1]})
    cloze.page.emulate_media(color_scheme="dark" if dark else "light")
    cloze.page.set_default_timeout(PATIENCE)
    home = urlsplit(server).netloc
    note = cloze.problems.append

    def check(request):
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != home:
            note(f"request to another host: {request.url}")

    def listen(message):
        if message.type == "error":
            note(f"console: {message.text}")

    def refuse(dialog):
        note(f"dialog: {dialog.message}")
        dialog.dismiss()

    cloze.hear("pageerror", lambda error: note(f"page error: {error}"))
    cloze.hear("console", listen)
    cloze.hear("dialog", refuse)
    cloze.hear("request", check)
    cloze.open(f"{server}/{link}")
    return cloze


def _tab(profile: BrowserContext) -> Page:
    left = [page for page in profile.pages if getattr(page, "left", False)]
    if not left:
        return profile.new_page()
    left[0].left = False
    return left[0]


def leave(cloze: Cloze, profile: BrowserContext) -> None:
    """Close a visitor's pages, and the profile if it is their own; one tab stays for the next."""
    own = cloze.page.context
    own.set_offline(False)
    for page in own.pages:
        if page is not cloze.page or own is not profile or not _clear(cloze):
            page.close()
    if own is not profile:
        own.close()


def _clear(cloze: Cloze) -> bool:
    """Whether nothing of a visitor is left in their tab."""
    page = cloze.page
    page.visits = getattr(page, "visits", 0) + 1
    if page.visits >= VISITS or page.is_closed():
        return False
    try:
        page.evaluate("sessionStorage.clear()")
        page.unroute_all(behavior="ignoreErrors")
        page.goto("about:blank", timeout=5000)
    except BrowserError:
        return False
    for event, hearer in cloze.hearers:
        page.remove_listener(event, hearer)
    page.left = True
    return True
