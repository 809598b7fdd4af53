"""The Attention lab of a page, for tests that use it as visitors do."""

import re

import numpy as np
from playwright.sync_api import expect

from tests.app.one_lab import OneLab
from tests.app.visitors import take

TEXT = "The capital of France is Paris."
LINK = "#text=The+capital+of+France+is+Paris.&model=bert-mini&marks=6&tab=attention"
# Rows of the numbers beside a chart, and whether they are the expected ones.
NUMBERS = """([id, expected, tolerance]) => {
  const number = (cell) => parseFloat(cell.textContent.replace('\u2212', '-'));
  const rows = [...document.querySelectorAll(`#${id} tbody tr`)]
    .map((row) => [...row.querySelectorAll('td')].map(number));
  return rows.length === expected.length && rows.every((row, i) => row.length === expected[i].length
    && row.every((value, j) => Math.abs(value - expected[i][j]) <= tolerance));
}"""


class AttentionLab(OneLab):
    """The lab once it has an answer."""

    lab, heading = "attention", "Which words look at which?"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        self.heads = self.panel.get_by_role("grid")
        self.tokens = self.panel.get_by_role(
            "group", name=self.named("Tokens that look"), exact=True
        )
        self.seen = self.panel.get_by_role("group", name=self.named("Tokens looked at"), exact=True)

    def says(self, text):
        expect(self.panel.get_by_text(text).first).to_be_visible()

    def open(self, mode):
        """Choose a mode; what is shown afterwards is its own."""
        self.panel.get_by_role("radio", name=self.named(mode), exact=True).check()
        self.cloze.rest()

    def press(self, name):
        self.panel.get_by_role("button", name=self.named(name), exact=True).click()

    def choose(self, label, option):
        take(self.panel.get_by_role("combobox", name=label, exact=True), option, exact=True)

    def cell(self, layer, head):
        """A head of the grid; numbers from 0, None for a mean."""
        name = "Mean over all heads" if layer is None else f"Layer {layer + 1} · Mean"
        if head is not None:
            name = f"Layer {layer + 1} · Head {head + 1}"
        return self.heads.get_by_role("gridcell", name=re.compile(rf"^{name}(\.|$)"))

    def select(self, layer, head):
        self.cell(layer, head).click()
        name = "Mean over all heads" if layer is None else f"Layer {layer + 1} · Mean"
        if head is not None:
            name = f"Layer {layer + 1} · Head {head + 1}"
        self.says(f"{name}: ")

    def shows(self, expected, name="attention-map", tolerance=6e-5):
        """Wait until these numbers stand beside a chart."""
        twin = self.page.locator(f"#{name} details")
        twin.wait_for()
        if twin.get_attribute("open") is None:
            twin.locator("summary").click()
        values = np.asarray(expected, dtype=float)
        self.page.wait_for_function(NUMBERS, arg=[name, values.tolist(), tolerance])

    def token(self, side, label):
        column = self.tokens if side == "from" else self.seen
        return column.get_by_role("button", name=re.compile(f"^“{re.escape(label)}”"))

    def marked(self):
        return self.heads.get_by_role("gridcell", selected=True)

    def kept(self):
        return self.page.evaluate("Cloze.kept('attention')")
