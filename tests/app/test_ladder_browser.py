"""The Ladder lab in Chromium: a change is chosen, its figures follow, and a link keeps both."""

import json
import re
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from core_models.ladder import rungs
from tests.app.one_lab import OneLab
from tests.app.visitors import take

TITLES = [rung.title for rung in rungs()]


class Lab(OneLab):
    """The Ladder lab of a page."""

    lab, heading = "ladder", "What did each change buy?"

    @property
    def change(self):
        return self.panel.get_by_role("combobox", name=self.named("Change"))

    def explains(self, number):
        title = f"{number}. {TITLES[number]}"
        expect(self.panel.get_by_role("heading", name=title, exact=True)).to_be_visible()


@pytest.fixture
def lab(module_page):
    """One page for these tests."""
    found = Lab(module_page)
    yield found
    assert module_page.problems == []


def test_changes_follow_each_other_and_the_link_keeps_them(lab):
    lab.explains(1)
    lab.panel.get_by_role("button", name="Next change").click()
    lab.explains(2)
    expect(lab.panel.get_by_role("rowheader", name="masking.rate")).to_be_visible()
    take(lab.change, TITLES[6])
    lab.explains(6)
    expect(lab.panel.get_by_text("(arXiv 2104.09864)")).to_be_visible()
    lab.panel.get_by_role("radio", name="Perplexity").check()
    expect(lab.panel.locator("#ladder-rungs .xtitle")).to_have_text("Perplexity")
    lab.page.wait_for_function("() => location.hash.includes('perplexity')")
    kept = re.search("lab-ladder=([^&]*)", unquote(lab.page.url))
    assert json.loads(kept[1]) == {"rung": "rotary", "measure": "perplexity"}
    lab.page.reload()
    lab.page.wait_for_function("!!window.Cloze?.openTab")
    lab.explains(6)
    expect(lab.panel.get_by_role("radio", name="Perplexity")).to_be_checked()
