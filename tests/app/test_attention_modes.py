"""The modes of the Attention lab in Chromium: what they show, keep, and survive."""

import os
import re
from urllib.parse import quote

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import core_models as cm
import viz
from app.serving import locales
from core_models.prediction import ablation, attention_flow
from core_models.prediction.passes import seen_with
from tests.app.attention_page import LINK, TEXT, AttentionLab
from tests.core.tiny_models import new, tiny

ALBERT = "t-albert-stack"
MODES = ("Combined", "Rollout & flow", "Norms", "Switch off", "q·k", "Compare")
STRANGE = {
    "m": "norms",
    "l": 77,
    "h": 5,
    "p": "9.9 x",
    "z": [1],
    "t": 1e9,
    "u": "no",
    "s": 7,
    "f": "<b>",
    "w": {},
    "q": -3,
}
WHOLE = (
    "() => document.querySelector('#attention-more .js-plotly-plot')?.layout.meta.rows.at(-1)[1]"
)


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
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


def link(**kept):
    state = quote(str(kept).replace("'", '"').replace("True", "true"))
    return f"{LINK}&lab-attention={state}"


@pytest.fixture
def lab(visit):
    lab = AttentionLab(visit(link=LINK))
    lab.says(re.compile("^Layer . · Head .: "))
    yield lab
    assert lab.cloze.problems == []


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


@pytest.mark.slow
def test_heads_are_picked_and_combined_and_a_link_restores_them(lab, maps, visit):
    lab.open("Combined")
    lab.says("Mean of 4 heads: ")
    lab.press("No heads")
    lab.says("Pick a head to begin.")
    lab.cell(1, 2).click()
    lab.cell(3, 0).click()
    lab.panel.get_by_role("radio", name="maximum").check()
    chosen = [(1, 2), (3, 0)]
    expected = attention_flow.combine(maps()[1], chosen, "max")
    lab.shows(expected)
    expect(lab.marked()).to_have_count(2)
    assert (lab.kept()["p"], lab.kept()["w"]) == ("1.2 3.0", "max")
    again = AttentionLab(visit(link="#" + lab.page.url.split("#", 1)[1]))
    again.shows(expected)
    again.cell(3, 0).click()
    again.shows(attention_flow.combine(maps()[1], chosen[:1], "max"))


@pytest.mark.slow
def test_a_second_sentence_is_read_with_its_segments(lab, model):
    lab.unfold("A second sentence, and colours")
    second = lab.panel.get_by_role("textbox", name="Second sentence")
    second.fill("Bees make honey .")
    lab.says(re.compile(r"every token: 0 – \[CLS\] The .* \[SEP\]; 1 – Bees make honey \. \[SEP\]"))
    lab.select(0, 0)  # one that looks across
    lab.panel.get_by_role("radio", name="first → second").check()
    lab.says(re.compile("^Layer 1 · Head 1: These links carry .*% of the attention"))
    lab.says(re.compile("^Layer 1 · Head 1. Strongest of all links: “"))
    (encoding,) = model.encode([(TEXT, "Bees make honey .")])
    encoding = seen_with(encoding, {6: model.tokenizer.mask_id})
    trace = cm.Trace(["probabilities"])
    with torch.no_grad():
        model.encoder(model.collate([encoding]), trace)
    expected = np.zeros((14, 14))
    expected[1:8, 9:13] = trace["probabilities", 0][0, 0].numpy()[1:8, 9:13]
    assert expected.sum() > 0
    lab.shows(expected)
    second.fill("")
    expect(lab.panel.get_by_text("every token: 0")).to_have_count(0)
    lab.page.wait_for_function("() => !('s' in Cloze.kept('attention'))")


@pytest.mark.slow
def test_rollout_flow_and_the_chosen_token(lab, maps):
    lab.open("Rollout & flow")
    found = maps()[1]

    def ways(position):
        last = found[-1].mean(0)[position], attention_flow.rollout(found)[-1, position]
        return np.stack([*last, attention_flow.flow(found, position)]).T

    lab.shows(ways(0), tolerance=6e-4)
    lab.says("their axis begins near the smallest")
    lab.choose("Token", "6 Paris")
    lab.shows(ways(6), tolerance=6e-4)
    lab.shows(attention_flow.rollout(found)[:, 6], "attention-more")
    assert lab.kept()["t"] == 6
    lab.press("Only the first layer")
    lab.shows(attention_flow.rollout(found[:1])[:, 6], "attention-more")
    lab.cloze.write("Bees make honey " * 8)
    lab.says("up to 16 tokens; this text has")


@pytest.mark.slow
def test_a_row_of_what_tokens_see_is_clicked_and_a_link_restores_it(lab, visit):
    lab.unfold("What each token may see")
    lab.says("bert-mini has full attention in every layer")
    table = lab.panel.locator("#attention-row")
    expect(table).to_contain_text("What “[MASK]” sees")
    plot = lab.panel.locator("#attention-causal .nsewdrag")
    box = plot.bounding_box()
    plot.click(position={"x": box["width"] / 2, "y": box["height"] * 2.5 / 9})  # of nine tokens
    expect(table).to_contain_text("What “capital” sees")
    expect(table.locator("tr", has_text="Causal")).to_contain_text("[CLS] The capital")
    lab.choose("Window of “local”", "1")
    local = table.locator("tr", has_text="Local: 1 on each side")
    expect(local).to_contain_text("The capital of")
    lab.page.wait_for_function("() => Cloze.kept('attention-visible').window === 1")
    assert lab.page.evaluate("Cloze.kept('attention-visible')") == {
        "open": True,
        "row": 2,
        "window": 1,
    }
    again = AttentionLab(visit(link="#" + lab.page.url.split("#", 1)[1]))
    table = again.panel.locator("#attention-row")
    expect(table).to_contain_text("What “capital” sees")
    expect(table).to_contain_text("Local: 1 on each side")
    again.panel.get_by_role("checkbox", name="Hide [CLS] and [SEP]").check()
    expect(again.panel.locator("#attention-full .ytick text")).to_have_count(7)


@pytest.mark.slow
def test_norms_follow_the_head_and_an_example_gives_less_than_it_gets(lab, model, maps):
    lab.open("Norms")
    lab.cell(2, 3).click()
    encoding, weights = maps()
    trace = cm.Trace(["v"], steps=[2])
    with torch.no_grad():
        model.encoder(model.collate([encoding]), trace)
    output = model.encoder.blocks[2].attention.output.weight.detach().numpy()
    moved = attention_flow.moved_values(trace["v", 2][0].numpy(), output)
    expected = attention_flow.head_norms(weights[2], moved)[3]
    lab.shows(expected, "attention-more", tolerance=6e-3)  # above ten with two decimals
    lab.press("A head that stares at [CLS] or [SEP]")
    lab.says(
        re.compile(r"Layer \d · Head \d: The special tokens get \d+.%.*give only \d+.% of all")
    )


@pytest.mark.slow
def test_heads_off_sweep_and_worst_head(lab, model, maps):
    lab.open("Switch off")
    encoding = maps()[0]
    piece = model.encode([TEXT])[0].ids[6]
    lab.panel.get_by_role("checkbox", name="Sweep: every head off in turn").check()
    change = ablation.damage(model, encoding, 6, piece).numpy()
    # Damage is above zero: what the word loses.
    lab.shows(-change, "attention-more", tolerance=6e-4)
    layer, head = np.unravel_index(change.argmin(), change.shape)
    lab.says(f"Layer {layer + 1} · Head {head + 1} matters most: without it “paris” loses")
    lab.says(f"loses {-change.min():.2f} nats")
    lab.says("Above zero (orange): the prediction suffers")
    lab.press("Switch off the head that hurts most")
    both = ablation.without_heads(model, encoding, 6, [(), [(int(layer), int(head))]])[:, piece]
    lab.says(f"{float(both[1] - both[0]):.2f} nats".replace("-", "\N{MINUS SIGN}"))
    expect(lab.marked()).to_have_count(1)
    lab.page.wait_for_function(
        "worst => Cloze.kept('attention').z === worst", arg=f"{layer}.{head}"
    )
    lab.press("Switch all on")
    expect(lab.marked()).to_have_count(0)


@pytest.mark.slow
def test_one_switch_of_shared_layers_hits_them_all(visit):
    lab = AttentionLab(
        visit(link=f"#text=red+fox+sees+small+dog&model={ALBERT}&marks=4&tab=attention")
    )
    lab.open("Switch off")
    lab.says("Switch a head off to see what changes.")
    lab.cell(1, 0).click()
    lab.says("3 heads of the stack are off at once")
    expect(lab.marked()).to_have_count(3)
    lab.panel.get_by_role("checkbox", name="In every layer that shares the weights").uncheck()
    expect(lab.marked()).to_have_count(1)


@pytest.mark.slow
def test_products_of_one_query(lab, model, maps):
    lab.open("q·k")
    lab.cell(2, 3).click()
    lab.says(re.compile("Layer 3 · Head 4: “.MASK.” looks most at"))
    trace = cm.Trace(["q", "k"], steps=[2])
    encoding, _ = maps()
    with torch.no_grad():
        model.encoder(model.collate([encoding]), trace)
    keys = trace["k", 2][0, 3]
    products = trace["q", 2][0, 3, 6] * keys
    softmax = (products.sum(-1) / keys.shape[-1] ** 0.5).softmax(-1)
    lab.shows(torch.cat([softmax[:, None], products], dim=1), tolerance=6e-3)
    steps = lab.page.locator("#attention-steps")
    expect(steps.get_by_role("columnheader", name="softmax")).to_have_count(0)
    expect(steps.get_by_role("columnheader", name="share")).to_have_count(1)
    expect(steps.get_by_role("row")).to_have_count(len(encoding.ids) + 1)


@pytest.mark.slow
def test_two_models_side_by_side(lab):
    lab.open("Compare")
    lab.says("the rows and columns are not the same")
    lab.panel.get_by_role("radio", name="one head of each").check()
    lab.choose("Its layer · head", "3 · 1")
    lab.says(f"{ALBERT}, Layer 3 · Head 1")
    lab.page.wait_for_function("() => Cloze.kept('attention').a === '2.0'")


@pytest.mark.slow
def test_a_preset_sweeps_the_sentence_that_it_sets_up(visit):
    lab = AttentionLab(visit(link="#text=Bees+make+honey+.&model=bert-mini&tab=attention"))
    lab.open("Switch off")
    lab.says("No word is hidden")
    lab.press("Hide “Paris” and sweep")
    lab.says(re.compile("matters most: without it “paris” loses"))
    assert lab.cloze.marked() == [6]
    lab.page.wait_for_function(f"({WHOLE})() != null")
    # Also where the sentence before had a swept gap of its own.
    lab.cloze.write("Bees make honey .")
    lab.cloze.at(3).click()
    lab.says(re.compile("matters most: without it “honey” loses|Without any one of them “honey”"))
    lab.press("Hide “Paris” and sweep")
    lab.says(re.compile("matters most: without it “paris” loses"))


@pytest.mark.slow
def test_examples_set_their_sentence_up(visit, maps):
    encoding, weights = maps()
    layer, head = viz.clearest_head(weights, encoding.special)
    clearest = f"Layer {layer + 1} · Head {head + 1}: "
    lab = AttentionLab(visit(link="#text=Bees+make+honey+.&model=bert-mini&tab=attention"))
    for mode, name, said in (
        ("Combined", "Two sentences: who looks across?", "Maximum of 16 heads: "),
        ("Combined", "All heads", "Maximum of 16 heads: "),
        ("Rollout & flow", "What fills the gap?", "“[MASK]”: the attention of layer 4"),
        ("Norms", "A head that links words", clearest),
        ("Norms", "All heads of the last layer together", "Layer 4 · all heads together: "),
        ("q·k", "The gap looks for its word", "“[MASK]” looks most at"),
        ("q·k", "The head with the clearest link", re.compile(f"{clearest}“(?!.MASK)")),
        ("Compare", "Rollout of both", "reads"),
    ):
        lab.open(mode)
        lab.press(name)
        lab.says(said)
    assert lab.cloze.marked() == [6]


@pytest.mark.slow
def test_links_of_before_open_as_they_were_kept(visit, maps):
    lab = AttentionLab(visit(link=link(m="heads", l=2, h=-1, x=1, o=1)))
    lab.says("Layer 3 · Mean: ")
    lab.shows(maps()[1][2].mean(0)[1:-1, 1:-1])
    lab.says("each map runs to its own strongest link")
    lab = AttentionLab(visit(link=link(m="off", z="1.1 2.0", u=0)))
    lab.says("Off: Layer 2 · Head 2, Layer 3 · Head 1.")
    assert lab.kept()["u"] is False


@pytest.mark.slow
def test_links_of_strangers_open_as_usual(visit):
    lab = AttentionLab(visit(link=link(**STRANGE)))
    lab.says("The special tokens get")
    for mode in MODES:
        lab.open(mode)
        expect(lab.panel.get_by_role("radio", name=mode, exact=True)).to_be_checked()
        expect(lab.page.locator("#attention-map")).to_be_visible()
        assert lab.panel.locator(".problem:visible").count() == 0  # at once


@pytest.mark.slow
def test_short_and_long_and_masked_texts(lab):
    for text, first in ((".", "."), ("bees make honey " * 300, "bees"), ("[MASK] is .", "[MASK]")):
        lab.open("Heads")
        lab.cloze.write(text)
        lab.says(re.compile("^Layer . · Head .: "))
        expect(lab.token("from", first).first).to_be_attached()
        for mode in MODES:
            lab.open(mode)
            assert lab.panel.locator(".problem:visible").count() == 0  # at once
        lab.says(re.compile("pieces"))


@pytest.mark.slow
def test_chinese_and_a_phone(visit):
    words = locales.catalogue("zh")
    lab = AttentionLab(visit(width=390, height=844, dark=True, link="?lang=zh" + LINK), words)
    for mode in MODES:
        lab.open(mode)
        expect(lab.page.locator("#attention-map")).to_be_visible()
        assert lab.cloze.overflow() <= 0, mode
    lab.unfold("What each token may see")
    expect(lab.page.locator("#attention-permuted")).to_be_visible()
    assert lab.cloze.overflow() <= 0
    assert lab.page.evaluate("[...ClozeLanguage.missing]") == []
