"""The modes of the Attention tab in Chromium: what they show, keep, save and survive."""

import os

import numpy as np
import pytest
import torch

import core_models as cm
from core_models import ablation, attention_flow
from core_models.prediction.passes import seen_with
from tests.core.tiny_models import new, tiny

TEXT = "The capital of France is Paris."
ROOT = ".view-attention"
ALBERT = "t-albert-stack"
LINK = "#text=The+capital+of+France+is+Paris.&model=bert-mini&marks=6&tab=attention"
MODES = ("combined", "rollout", "norms", "off", "products", "compare")


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory, session):
    """A tiny model of shared layers, known to the page while this module runs."""
    folder = tmp_path_factory.mktemp("shared")
    new(tiny("albert-base", layers=3), heads=("masked_token",)).save(folder / ALBERT)
    before = os.environ.get("CLOZE_MODELS")
    os.environ["CLOZE_MODELS"] = os.pathsep.join(filter(None, [before, str(folder)]))
    session._infos = {}
    yield
    session._infos = {}
    session._loaded.pop(ALBERT, None)
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


class Tab:
    """The Attention tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        self.page.wait_for_selector(f"{ROOT}[data-rev]")

    def panel(self, mode):
        return f'.attn-panel[data-mode="{mode}"]'

    def open(self, mode):
        self.page.click(f'[data-role="modes"] [data-choice="{mode}"]')
        if mode != "heads":
            self.page.wait_for_selector(f"{self.panel(mode)}[data-rev]")

    def drawn(self, mode, action):
        """Do something that asks and wait for its answer."""
        name = self.panel(mode)
        before = self.page.get_attribute(name, "data-rev")
        action()
        self.page.wait_for_function(
            "([name, before]) => document.querySelector(name)?.dataset.rev !== before",
            arg=[name, before],
        )

    def cell(self, layer, head):
        self.page.click(f'.attn-cells [data-layer="{layer}"][data-head="{head}"]')

    def table(self, n=0, mode=None):
        """The numbers of a table twin; shares come back as percent."""
        box = self.page.locator(f"{self.panel(mode)} details").first
        if box.get_attribute("open") is None:
            box.locator("summary").click()
            box.locator("tbody tr").first.wait_for()
        return (
            box.locator("table")
            .nth(n)
            .evaluate(
                """table => [...table.querySelectorAll('tbody tr')].map(row =>
                [...row.querySelectorAll('td')].map(cell =>
                    parseFloat(cell.textContent.replace('\u2212', '-'))))"""
            )
        )

    def text(self, selector):
        text = self.page.inner_text(selector).replace("\N{NO-BREAK SPACE}", " ")
        return text.replace("\N{MINUS SIGN}", "-")

    def kept(self):
        return self.page.evaluate("Cloze.kept('attention')")


@pytest.fixture
def tab(visit):
    return Tab(visit(link=LINK))


@pytest.fixture
def maps(model):
    def compute(text=TEXT, masks=(6,)):
        (encoding,) = model.encode([text])
        encoding = seen_with(encoding, dict.fromkeys(masks, model.tokenizer.mask_id))
        trace = cm.Trace(["probabilities"])
        with torch.no_grad():
            model.encoder(model.collate([encoding]), trace)
        return encoding, trace.stack("probabilities")[:, 0].numpy()

    return compute


def test_heads_are_picked_and_combined_and_a_link_restores_them(tab, maps, visit):
    tab.open("combined")
    tab.page.get_by_role("button", name="No heads").click()
    tab.drawn("combined", lambda: tab.cell(1, 2))
    tab.drawn("combined", lambda: tab.cell(3, 0))
    tab.drawn("combined", lambda: tab.page.get_by_role("radio", name="maximum").click())
    chosen = [(1, 2), (3, 0)]
    expected = attention_flow.combine(maps()[1], chosen, "max")
    np.testing.assert_allclose(np.array(tab.table(0, "combined")) / 100, expected, atol=6e-5)
    assert tab.page.locator('.attn-cells [aria-selected="true"]').count() == 2
    again = Tab(visit(link="#" + tab.page.url.split("#", 1)[1]))
    again.page.wait_for_selector(f"{again.panel('combined')}[data-rev]")
    np.testing.assert_allclose(np.array(again.table(0, "combined")) / 100, expected, atol=6e-5)
    tab.drawn("combined", lambda: tab.cell(3, 0))
    mean = attention_flow.combine(maps()[1], chosen[:1], "max")
    np.testing.assert_allclose(np.array(tab.table(0, "combined")) / 100, mean, atol=6e-5)


def test_a_second_sentence_is_read_with_its_segments(tab, model):
    page = tab.page
    page.click('[data-action="add-second"]')
    page.fill("#attn-second", "Bees make honey .")
    page.wait_for_selector(".attn-segment")
    (encoding,) = model.encode([(TEXT, "Bees make honey .")])
    shown = page.locator(".attn-segment small").all_inner_texts()
    assert [int(number) for number in shown] == encoding.segment_ids
    tab.cell(0, 0)  # one that looks across
    page.click('[data-role="filter"] [data-choice="ab"]')
    page.wait_for_function(
        """() => document.querySelectorAll('.attn-links path').length > 0 && document
            .querySelector('[data-role="filter"] [aria-checked="true"]').dataset.choice === 'ab'"""
    )
    box = page.locator(f'{ROOT} [data-role="table-box"]')
    box.locator("summary").click()
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-role="table"] tbody tr')].length > 9
            && document.querySelector('[data-role="table"] tbody td').textContent === '0.00'"""
    )
    values = np.array(
        page.evaluate(
            """() => [...document.querySelectorAll('[data-role="table"] tbody tr')].map(row =>
                [...row.querySelectorAll('td')].map(cell => Number(cell.textContent)))"""
        )
    )
    assert values[1:8, 9:13].sum() > 0
    values[1:8, 9:13] = 0
    assert not values.any()
    page.click('[data-action="remove-second"]')
    page.wait_for_selector(".attn-segment", state="hidden")
    assert "s" not in tab.kept()


def test_rollout_flow_and_the_chosen_token(tab, maps):
    tab.open("rollout")
    found = maps()[1]
    shown = np.array(tab.table(0, "rollout")) / 100
    np.testing.assert_allclose(shown[1], attention_flow.rollout(found)[-1, 0], atol=6e-3)
    np.testing.assert_allclose(shown[2], attention_flow.flow(found, 0), atol=6e-3)
    tab.drawn("rollout", lambda: tab.page.get_by_label("Token", exact=True).select_option("6"))
    shown = np.array(tab.table(0, "rollout")) / 100
    np.testing.assert_allclose(shown[1], attention_flow.rollout(found)[-1, 6], atol=6e-3)
    assert tab.kept()["t"] == 6
    tab.drawn("rollout", lambda: tab.cloze.write("Bees make honey " * 8))
    assert "up to 16 tokens; this text has" in tab.text(tab.panel("rollout"))


def test_norms_follow_the_head_that_is_clicked(tab, model, maps):
    tab.open("norms")
    tab.drawn("norms", lambda: tab.cell(2, 3))
    encoding, weights = maps()
    trace = cm.Trace(["v"], steps=[2])
    with torch.no_grad():
        model.encoder(model.collate([encoding]), trace)
    output = model.encoder.blocks[2].attention.output.weight.detach().numpy()
    moved = attention_flow.moved_values(trace["v", 2][0].numpy(), output)
    expected = attention_flow.head_norms(weights[2], moved)[3]
    np.testing.assert_allclose(np.array(tab.table(1, "norms")), expected, atol=6e-4)


def test_heads_off_sweep_and_worst_head(tab, model, maps):
    tab.open("off")
    page = tab.page
    encoding = maps()[0]
    piece = model.encode([TEXT])[0].ids[6]
    page.click('[data-action="sweep"]')
    page.wait_for_selector('figure[data-done="true"]')
    change = ablation.damage(model, encoding, 6, piece).numpy()
    # Damage is above zero: what the word loses.
    np.testing.assert_allclose(np.array(tab.table(1, "off")), -change, atol=6e-4)
    layer, head = np.unravel_index(change.argmin(), change.shape)
    assert f"loses {-change.min():.2f} nats" in tab.text(tab.panel("off"))
    assert "Above zero (teal): the prediction suffers" in tab.text(tab.panel("off"))
    with page.expect_download() as download:
        page.click(f'{tab.panel("off")} [data-save="csv"]')
    saved = download.value.path().read_text(encoding="utf-8")
    assert f"{-change[layer, head]:.4f}"[:6] in saved
    assert f"Layer {layer + 1} · Head {head + 1} matters most" in tab.text(tab.panel("off"))
    tab.drawn("off", lambda: page.get_by_role("button", name="the head that hurts most").click())
    both = ablation.without_heads(model, encoding, 6, [(), [(int(layer), int(head))]])[:, piece]
    assert f"{float(both[1] - both[0]):.2f} nats" in tab.text(tab.panel("off"))
    assert page.locator(".attn-cells button.off").count() == 1
    assert tab.kept()["z"] == f"{layer}.{head}"
    tab.drawn("off", lambda: page.get_by_role("button", name="Switch all on").click())
    assert page.locator(".attn-cells button.off").count() == 0


def test_one_switch_of_shared_layers_hits_them_all(visit):
    tab = Tab(visit(link=f"#text=red+fox+sees+small+dog&model={ALBERT}&marks=4&tab=attention"))
    tab.open("off")
    tab.drawn("off", lambda: tab.cell(1, 0))
    assert tab.page.locator(".attn-cells button.off").count() == 3
    assert "3 heads of the stack are off at once" in tab.text(tab.panel("off"))
    tab.drawn("off", lambda: tab.page.get_by_role("switch", name="In every layer").click())
    assert tab.page.locator(".attn-cells button.off").count() == 1


def test_products_of_one_query(tab, model, maps):
    tab.open("products")
    tab.drawn("products", lambda: tab.cell(2, 3))
    rows = tab.page.locator(".attn-keys tbody tr")
    weights = maps()[1][2, 3, 6]
    assert rows.count() == len(weights)
    best = int(weights.argmax())
    share = rows.nth(best).locator('[data-name="share"]').inner_text()
    assert float(share.split()[0]) == pytest.approx(100 * float(weights[best]), abs=0.6)
    sums = np.array(tab.table(0, "products"))
    products = np.array(tab.table(1, "products"))
    np.testing.assert_allclose(products.sum(1), sums[:, 0], atol=0.05)


def test_products_fit_a_phone(visit):
    tab = Tab(visit(width=390, height=844, link=LINK))
    tab.open("products")
    box = tab.page.locator(".attn-keys").locator("..")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0
    row = tab.page.locator(".attn-keys tbody tr").first
    score = row.locator('[data-name="score"]')
    # Each number stands beside its name, and readers of screens still find a table.
    assert score.evaluate("cell => getComputedStyle(cell, '::before').content") == '"score"'
    assert tab.page.get_by_role("columnheader", name="score", exact=True).count() == 1
    assert row.get_by_role("cell").count() == 5


def test_two_models_side_by_side(tab):
    tab.open("compare")
    assert "the rows and columns are not the same" in tab.text(tab.panel("compare"))
    tab.drawn("compare", lambda: tab.page.get_by_role("radio", name="one head of each").click())
    tab.drawn(
        "compare",
        lambda: tab.page.get_by_label("Layer", exact=True).nth(1).select_option(index=2),
    )
    assert tab.kept()["a"].startswith("2.")


def test_every_mode_saves_its_files(tab, tmp_path):
    for mode in MODES:
        tab.open(mode)
        for what, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("csv", b"")):
            with tab.page.expect_download() as event:
                tab.page.click(f'{tab.panel(mode)} [data-save="{what}"]')
            path = tmp_path / event.value.suggested_filename
            event.value.save_as(path)
            assert path.name == f"attention-{mode}.{what}"
            assert path.read_bytes().startswith(start)
            assert path.stat().st_size > 100


def test_examples_set_their_sentence_up(visit):
    tab = Tab(visit(link="#text=Bees+make+honey+.&model=bert-mini&tab=attention"))
    tab.open("off")
    assert "No word is hidden" in tab.text(tab.panel("off"))
    tab.page.get_by_role("button", name="Hide “Paris” and sweep").click()
    tab.page.wait_for_selector('figure[data-done="true"]')
    assert tab.cloze.marked() == [6]
    for mode in ("combined", "rollout", "norms", "products", "compare"):
        tab.open(mode)
        for button in tab.page.locator(f"{tab.panel(mode)} .attn-try").all():
            button.click()
            tab.page.wait_for_selector(f'{ROOT} [data-role="lab"]:not([aria-busy])')
            assert tab.page.locator(f"{tab.panel(mode)} .problem").is_hidden()


def test_links_of_strangers_open_as_usual(visit):
    link = (
        LINK
        + "&lab-attention="
        + (
            '{"m":"norms","l":77,"h":5,"p":"9.9 x","z":[1],"t":1e9,'
            '"u":"no","s":7,"f":"<b>","w":{},"q":-3}'
        )
    )
    tab = Tab(visit(link=link))
    tab.page.wait_for_selector(f"{tab.panel('norms')}[data-rev]")
    for mode in MODES:
        tab.open(mode)
        assert tab.page.locator(f"{tab.panel(mode)} .problem").is_hidden()


def test_short_and_long_and_masked_texts(tab):
    tab.open("combined")
    for text in (".", "bees make honey " * 300, "[MASK] [MASK] [MASK]"):
        before = tab.page.get_attribute(ROOT, "data-rev")
        tab.page.fill("#sentence-text textarea", text)
        tab.page.wait_for_function(
            "([root, before]) => document.querySelector(root).dataset.rev !== before",
            arg=[ROOT, before],
        )
        for mode in MODES:
            tab.open(mode)
            tab.page.wait_for_selector(f'{ROOT} [data-role="lab"]:not([aria-busy])')
            assert tab.page.locator(f"{tab.panel(mode)} .problem").is_hidden()


def test_chinese_and_a_phone(visit):
    tab = Tab(visit(width=390, height=844, dark=True, link="?lang=zh" + LINK))
    for mode in MODES:
        tab.open(mode)
        assert tab.cloze.overflow() <= 0
    missing = tab.page.evaluate("[...ClozeLanguage.missing]")
    assert [key for key in missing if key != "注意力"] == []
