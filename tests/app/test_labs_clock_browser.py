"""The clock of ``benchmarks.labs`` in Chromium: it runs until what was asked is there."""

import pytest

from benchmarks.labs import WATCH

PAGE = """
<div id="tabs"><div role="tabpanel"><button>Ask</button><output></output></div></div>
<script>
const answers = %s; // after so many milliseconds
const slow = %s; // how long a picture takes to be painted
if (slow) window.requestAnimationFrame = (paint) => setTimeout(paint, slow);
window.fetch = (after) => new Promise((done) => setTimeout(done, after));
document.querySelector('button').addEventListener('click', async () => {
  const shown = document.querySelector('output');
  shown.dataset.state = 'waiting';
  for (const after of answers) {
    await fetch(after);
    shown.textContent += 'answer ';
  }
});
</script>
"""


@pytest.mark.parametrize(
    ("answers", "slow", "least"), [([400], 0, 400), ([10, 600], 0, 600), ([400], 300, 650)]
)
def test_what_comes_later_than_the_view_stands_still_is_waited_for(browser, answers, slow, least):
    longest = 20_000
    assert least <= _clocked(browser, answers, slow, longest) < longest


def test_no_answer_is_waited_for_longer_than_said(browser):
    assert _clocked(browser, [20_000], 0, longest=1000) == 1000


def _clocked(browser, answers, slow, longest):
    """Milliseconds from the click until the view stood still for a tenth of a second."""
    page = browser.new_page()
    try:
        page.set_content(PAGE % (answers, slow))
        page.evaluate(WATCH, [100, longest])
        page.get_by_role("button", name="Ask").click()
        return page.evaluate("window.settled()")
    finally:
        page.close()
