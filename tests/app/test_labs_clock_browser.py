"""The clock of ``benchmarks.labs`` in Chromium: it runs until what was asked is there."""

import pytest

from benchmarks.labs import WATCH

PAGE = """
<div id="tabs"><div role="tabpanel"><button>Ask</button><output></output></div></div>
<script>
const answers = %s; // after so many milliseconds
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
STILL, LONGEST = 100, 2000


@pytest.mark.parametrize(
    ("answers", "least", "most"), [([400], 400, 1900), ([10, 600], 600, 1900), ([9000], 2000, 2000)]
)
def test_an_answer_later_than_the_view_stands_still_is_waited_for(browser, answers, least, most):
    page = browser.new_page()
    try:
        page.set_content(PAGE % answers)
        page.evaluate(WATCH, [STILL, LONGEST])
        page.get_by_role("button", name="Ask").click()
        assert least <= page.evaluate("window.settled()") <= most
    finally:
        page.close()
