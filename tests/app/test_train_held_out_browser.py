"""The Train tab in Chromium: held-out examples, tabs that a run opens, address, Chinese."""

import json
import re
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from app.runs.data.texts import SHIPPED
from tests.app.test_train_browser import CONFIG
from tests.app.train_tab import Form, Run, legend, look_again, open_form, open_run, shared
from tests.core.tiny_models import new, tiny

DATA = CONFIG["data"] | {"texts": list(SHIPPED)[:1]}


# Labels and help that are still English.
ENGLISH = """form => [...form.querySelectorAll('span, label, p, button, th')]
  .filter((node) => node.checkVisibility() && !node.children.length)
  .filter((node) => !node.closest('.code, pre, bdi'))
  .map((node) => node.textContent.trim())
  .filter((text) => /[a-z]{3,} [a-z]{2,} [a-z]{2,}/i.test(text))
  .filter((text) => !/[\\u4e00-\\u9fff]/.test(text))"""


def asked(place, right, **more):
    common = {"place": place, "right": right, "shown": "[MASK]", "loss": 2.5, "chance": 0.25}
    return common | {"wrong": False} | more


def example(loss, *questions, pieces="[CLS] the cat sle ep s . [SEP]"):
    glued = ("ep", "s")
    return {
        "loss": loss,
        "questions": max(1, len(questions)),
        "pieces": [[piece, piece not in glued] for piece in pieces.split()],
        "asked": list(questions),
    }


MASKED = {
    "step": 40,
    "kind": "masked_token",
    "examples": 30,
    "worst": [
        example(4.25, asked(2, "cat", said="<b>dog</b>", wrong=True), asked(4, "ep", said="ep"))
    ],
    "best": [example(0.5, asked(6, ".", said="."))],
}
REPLACED = {
    "step": 40,
    "kind": "replaced_token",
    "examples": 30,
    "worst": [
        example(
            1.5,
            asked(2, "cat", shown="house", replaced=True, wrong=True, chance=0.125),
            asked(6, ".", shown=".", replaced=False, wrong=True, chance=0.75),
        )
    ],
    "best": [],
}


@pytest.fixture
def make(runs):
    """Makes finished runs that are only files."""
    made = []

    def make(name, **status):
        run = runs.create(CONFIG | {"name": name, "data": DATA})
        folder = runs.folder(run)
        for step in (20, 40):
            folder.append_metrics(
                {
                    "step": step,
                    "tokens": step,
                    "seconds": 1.0,
                    "loss": 6.0,
                    "masked_token_loss": 6.0,
                }
            )
        folder.write_status({"state": "finished", "step": 40, "steps": 40} | status)
        made.append(run)
        return folder

    yield make
    for run in made:
        runs.delete(run)


@pytest.fixture
def cloze(module_page):
    """One page for the tests that are not about opening one."""
    yield from shared(module_page)


@pytest.mark.slow
def test_held_out_examples_show_what_was_hidden_and_what_was_said(make, cloze):
    folder = make("Examples")
    folder.write_validation(MASKED)
    page = open_run(cloze, folder.path.name)
    shown = Run(cloze)
    shown.fold("Held-out examples")
    shown.says("After step 40, of 30 examples")
    passage = page.locator(".train-extremes").first.locator(".train-passage")
    words = passage.evaluate("p => p.textContent")
    assert words == "the cat<b>dog</b> sleep✓s."  # under "cat" what was said, under "ep" a tick
    first = shown.examples.get_by_role("img").first
    expect(first).to_have_attribute("data-wrong", "yes")
    for told in ("25.0\xa0%", "right is “cat”; loss 2.50"):
        expect(first).to_have_attribute("title", re.compile(re.escape(told)))
    shown.says("Loss 4.25 nats for each of 2 tokens")
    shown.examples.get_by_text("The easiest").click()
    # The next validation replaces it, and what was open stays open.
    folder.write_validation(MASKED | {"step": 60})
    look_again(page)
    shown.says("After step 60, of 30 examples")
    shown.says("Loss 0.50 nats")


@pytest.mark.slow
def test_the_address_keeps_the_form_and_the_runs_compared(make, cloze, visit, server):
    first, second = make("First").path.name, make("Second").path.name
    page = open_run(cloze, first)
    Run(cloze).compare("Second")
    legend(page, 2)
    page.wait_for_function("location.hash.includes('lab-train')")
    link = page.url[page.url.index("#") :]
    assert json.loads(unquote(link).split("lab-train=")[1].split("&")[0]) == {"with": [second]}
    other = visit(link=link)
    again = other.page
    again.set_default_timeout(60_000)
    legend(again, 2)
    again.get_by_role("button", name="New run", exact=True).click()
    again.get_by_role("radio", name="Race", exact=True).check()
    race = Form(other, "race")
    race.says("3 models, ")
    again.reload()
    race.says("3 models, ")
    # Whatever a stranger writes there, the form opens.
    for broken in ('{"form":5,"with":7}', '{"form":"nothing","with":[null,"x/../y",3]}'):
        again.goto("about:blank")
        other.open(f"{server}/#text=A+cat.&tab=train&lab-train={broken}")
        Form(other, "pretraining").says("It will read at most")
    Form(other, "pretraining").says("1,200 steps")  # of the recipe that a form begins with


@pytest.mark.slow
def test_a_form_is_there_when_the_page_is_opened_again(make, visit):
    """And not the newest run, as for somebody who has come to look."""
    make("Newest")
    cloze = visit()
    form = open_form(cloze)
    cloze.page.wait_for_function("location.hash.includes('lab-train')")
    cloze.page.reload()
    form.says("It will read at most")
    cloze.rest()
    assert not cloze.page.evaluate("Cloze.place.run")


@pytest.mark.slow
def test_a_discriminator_opens_in_the_forge_tab(make, cloze):
    folder = make("Detective", losses={"masked_token": 1.0, "replaced_token": 50.0})
    folder.write_validation(REPLACED)
    new(tiny("electra-small-discriminator")).save(folder.model_path)
    generator = tiny("electra-small-generator")
    new(generator, seed=2).save(folder.path / "generator")
    name = f"run/{folder.path.name}"
    cloze.page.set_viewport_size({"width": 390, "height": 800})
    page = open_run(cloze, folder.path.name)
    shown = Run(cloze)
    shown.fold("Held-out examples")
    fakes = shown.examples.get_by_role("img")
    expect(fakes).to_have_text(["house\n✗ cat", ".\n✗ the original"], use_inner_text=True)
    assert cloze.overflow() <= 0
    shown.button("Let it find replaced words").click()
    page.wait_for_function("name => Cloze.sentence.model === name", arg=name)
    page.get_by_role("heading", name="Who wrote this word?").wait_for()
    page.wait_for_function("document.querySelector('#tab-forge')?.offsetParent !== null")


@pytest.mark.slow
def test_the_tab_speaks_chinese(visit, make):
    folder = make("Chinese", baselines={"uniform": 8.7, "unigram_entropy": 6.3})
    folder.write_validation(MASKED)
    cloze = visit(link=f"?lang=zh#run={folder.path.name}")
    page = cloze.page
    page.set_default_timeout(60_000)
    shown = Run(cloze)
    shown.state("已完成")
    shown.says(re.compile("^第40步：.*训练"))
    shown.root.evaluate(
        "run => run.querySelectorAll('.label-wrap:not(.open)').forEach((b) => b.click())"
    )
    cloze.rest()
    assert shown.root.evaluate(ENGLISH) == []
    page.get_by_role("button", name="新建训练任务", exact=True).click()
    for kind, title in (("pretraining", "预训练"), ("task", "微调"), ("race", "竞赛")):
        page.get_by_role("radio", name=title, exact=True).check()
        form = Form(cloze, kind)
        form.root.locator(".said:visible").first.wait_for()
        form.root.evaluate(
            "form => form.querySelectorAll('.label-wrap:not(.open)').forEach((b) => b.click())"
        )
        cloze.rest()
        english = form.root.evaluate(ENGLISH)
        assert english == []
    form.says("3个模型")
    form.root.get_by_label("批次大小", exact=True).fill("-3")
    form.refuses("批次大小 = -3：必须大于或等于1。")
    own = page.evaluate(
        "[...ClozeLanguage.missing].filter((key) => !/[\\u4e00-\\u9fff]/.test(key))"
    )
    assert own == []


BATCH = """async () => {
  const { mountBatch } = await import(`${ClozeRoot}cloze/app/labs/train/batch.js`);
  const row = { pieces: ['a', 'b'], ids: [1, 2], segments: [0, 0], case: ['', ''], number: 1 };
  const [answer, score] = [['answer'], ['{0} of 1', '0.50']];
  const rows = [{ ...row, labels: [null, answer] }, { ...row, labels: [null, null], says: score }];
  const root = document.createElement('div');
  mountBatch({ root, value: { rows }, onValue() {} });
  return root.querySelector('.train-rows').textContent;
}"""


def test_the_first_batch_speaks_chinese(visit):
    said = visit(link="?lang=zh").page.evaluate(BATCH)
    assert "0.50（满分1）" in said
    assert "答案" in said
    assert "answer" not in said
