"""Every tab in English, and axe-core over it: all rules in the light on a desktop, and what colours
and widths decide in the dark on a phone. In Chinese: ``test_walk_browser.py``.

axe-core comes with the package axe-playwright-python; only its script is used.
"""

import json
from importlib.resources import files

import pytest

from app.page.places import LABS
from tests.app.test_walk_browser import SENTENCE, walk

ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
COLOURS_AND_WIDTHS = [
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
  if (!views.length || panel.querySelector('[aria-busy=true]')) return false;
  return views.some((view) => view.textContent.trim().length > 20)
    && !views.some((view) => ['waiting', 'loading'].includes(view.dataset.state));
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("size", "dark", "rules"),
    [
        (1280, False, ALL),
        pytest.param(390, True, COLOURS_AND_WIDTHS, marks=pytest.mark.slow),
    ],
    ids=["desktop", "phone"],
)
def test_every_tab_opens_and_fits_and_has_no_serious_violation(visit, axe, size, dark, rules):
    cloze = visit(width=size, dark=dark, link=f"?lang=en{SENTENCE}")
    page = cloze.page
    page.set_default_timeout(60_000)
    page.evaluate(axe)
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    wrong: dict[str, object] = {}
    for name, _, _ in walk(cloze, "en", [(size, dark)]):
        if (wide := cloze.overflow()) > 0:
            wrong[f"{name} is too wide by"] = wide
        page.wait_for_function(LAID_OUT)
        page.evaluate("document.getAnimations().forEach((a) => a.finish())")
        # The whole page once, later only what is new.
        part = None if name == LABS[0].name else f"#tab-{name}"
        if violations := page.evaluate(RUN, [part, rules]):
            wrong[name] = violations
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)


def test_a_planted_violation_is_found(cloze, axe):
    """The check itself can fail: a button without a name, and text that is too pale."""
    cloze.page.evaluate(axe)
    cloze.page.evaluate(
        """() => { const box = document.createElement('div');
        box.id = 'planted';
        box.innerHTML = '<button></button><p style="color:#bbb;background:#fff">pale</p>';
        document.querySelector('main').append(box); }"""
    )
    planted = (ALL, {"button-name", "color-contrast"}), (COLOURS_AND_WIDTHS, {"color-contrast"})
    for rules, wanted in planted:
        violations = cloze.page.evaluate(RUN, ["#planted", rules])
        assert wanted <= {violation["rule"] for violation in violations}, rules
