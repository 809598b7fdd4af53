"""axe-core over every tab: all rules in the light on a desktop, and what colours and widths decide
in the dark on a phone.

axe-core comes with the package axe-playwright-python; only its script is used.
"""

import json
from importlib.resources import files

import pytest

from app.main import TABS

SENTENCE = "The capital of France is Paris ."
ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
LOOKS = [
    "color-contrast",
    "link-in-text-block",
    "scrollable-region-focusable",
    "meta-viewport",
    "css-orientation-lock",
    "aria-hidden-focus",
    "label-title-only",
]
RUN = """async ([part, rules]) => {
  const found = await axe.run(part ?? document, { resultTypes: ['violations'], runOnly: rules });
  return found.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => ({
    rule: v.id, impact: v.impact, help: v.help,
    where: v.nodes.map((n) => [n.target.join(' '), n.any.concat(n.all, n.none)[0]?.message ?? '']),
  }));
}"""
LAID_OUT = """() => {
  const panel = [...document.querySelectorAll('#tabs [role=tabpanel]')].find((p) => p.offsetParent);
  const views = [...(panel?.querySelectorAll('.view') ?? [])].filter((v) => v.offsetParent);
  return views.length > 0 && views.every((view) => view.textContent.trim().length > 20
    && !['waiting', 'loading'].includes(view.dataset.state));
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("width", "dark", "rules"), [(1280, False, ALL), (390, True, LOOKS)])
def test_no_tab_has_a_serious_violation(visit, axe, width, dark, rules):
    cloze = visit(width=width, dark=dark)
    page = cloze.page
    page.set_default_timeout(60_000)
    page.evaluate(axe)
    cloze.write(SENTENCE)
    cloze.at(6).click()
    found: dict[str, list] = {}
    for label, _ in TABS:
        page.evaluate("label => Cloze.openTab(label)", label)
        page.wait_for_function(LAID_OUT)
        page.evaluate("document.getAnimations().forEach((a) => a.finish())")
        # The whole page once, later only what is new.
        part = None if label == TABS[0][0] else f"#tab-{label.lower()}"
        if violations := page.evaluate(RUN, [part, rules]):
            found[label] = violations
    assert found == {}, json.dumps(found, indent=1, ensure_ascii=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "planted"),
    [(ALL, {"button-name", "color-contrast"}), (LOOKS, {"color-contrast"})],
)
def test_a_planted_violation_is_found(cloze, axe, rules, planted):
    """The check itself can fail: a button without a name, and text that is too pale."""
    cloze.page.evaluate(axe)
    cloze.page.evaluate(
        """() => { const box = document.createElement('div');
        box.id = 'planted';
        box.innerHTML = '<button></button><p style="color:#bbb;background:#fff">pale</p>';
        document.querySelector('main').append(box); }"""
    )
    found = {violation["rule"] for violation in cloze.page.evaluate(RUN, ["#planted", rules])}
    assert planted <= found
