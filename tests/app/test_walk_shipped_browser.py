"""The labs that need a family of their own, over the shipped models, in both languages.

The other tests of the page have one model (``conftest.py``); here ``app.py`` runs as visitors run
it. ``CLOZE_PICTURES=folder`` keeps a picture of each lab.
"""

import os
from pathlib import Path

import pytest

from benchmarks.page import server
from tests.app.test_walk_browser import DRAWN, ENGLISH, OPEN
from tests.app.visitors import leave, new_page

LABS = (
    ("Forge", "electra-mini"),
    ("Forge", "deberta-v3-mini"),
    ("Permutation", "xlnet-mini"),
    ("Terms", "deberta-mini"),
    ("Terms", "deberta-v3-mini"),
    ("Spans", "spanbert-mini"),
    ("Attention", "albert-mini"),
    ("Pairs", "albert-mini"),
    ("Mask", "causal-mini"),
    ("Mask", "roberta-mini"),
)
READY = """name => {
  const view = [...document.querySelectorAll(`#tab-${name} .view`)].find((v) => v.offsetParent);
  return view.dataset.state ?? 'ready';
}"""
MODELS_OPEN = 'lab-mask-models={"open":true}&lab-mask-together={"open":true}'


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of its own, with all that is shipped."""
    with server(tmp_path_factory.mktemp("runs")) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("language", "width", "dark"), [("en", 1280, False), ("zh", 390, True)])
def test_every_lab_with_the_model_it_is_made_for(profile, address, language, width, dark):
    pictures = os.environ.get("CLOZE_PICTURES")
    wrong = {}
    for label, model in LABS:
        name = label.lower()
        more = f"&{MODELS_OPEN}" if name == "mask" else ""
        cloze = new_page(
            profile,
            address,
            (width, 900),
            dark=dark,
            link=f"?lang={language}#text=The+capital+of+France+is+Paris+.&model={model}"
            f"&marks=6&tab={name}{more}",
        )
        page = cloze.page
        page.wait_for_function("() => Cloze.sentence.model && Cloze.sentence.marks.size === 1")
        page.wait_for_function(OPEN, arg=[name, label], polling=250)
        page.wait_for_function(DRAWN, arg=name)
        page.wait_for_function("() => !document.querySelector('[data-state=waiting]')")
        if pictures:
            page.wait_for_timeout(800)
            shot = f"{name}-{model}-{language}-{width}-{'dark' if dark else 'light'}.png"
            page.screenshot(path=Path(pictures) / shot, full_page=True)
        found = {
            "model": page.evaluate("Cloze.sentence.model") != model,
            "state": page.evaluate(READY, name) != "ready",
            "wide": max(0, cloze.overflow()),
            "english": page.evaluate(ENGLISH, name) if language == "zh" else [],
            "untranslated": page.evaluate("[...ClozeLanguage.missing]"),
            "problems": cloze.problems,
        }
        leave(cloze, profile)
        if any(found.values()):
            wrong[f"{label} {model}"] = found
    assert wrong == {}
