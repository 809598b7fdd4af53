"""Who looks at whom and the pictures of the Mask tab, without a browser."""

import asyncio
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch

import core_models as cm
from app.labs.mask import lab as mask
from app.labs.mask import models as mask_models
from app.labs.mask import said
from app.labs.mask.sight import MOST_WORDS, sight
from app.serving.locales import spoken
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import fill
from tests.core.tiny_models import narrow
from viz.bars import FULL

TEXT = "Madrid is the capital of Spain."
LINES = [TEXT, "The capital of Spain is Madrid, and the lake is cold in winter."] * 4
SVG = "{http://www.w3.org/2000/svg}"


def small(name: str, head: str, direction: str = "both", kind: str = "wordpiece") -> cm.Model:
    vocabulary = 300 if kind == "byte_bpe" else 120
    tokenizer = cm.Tokenizer.train(LINES, vocabulary=vocabulary, kind=kind)
    config = cm.size(name).with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
    config = narrow(config, width=32, inner=64)
    config = replace(config, attention=replace(config.attention, direction=direction))
    generator = torch.Generator().manual_seed(4)
    return cm.Model.new(config, tokenizer, heads=[head], generator=generator).eval()


@pytest.fixture(scope="module")
def masked():
    return small("bert-tiny", "masked_token")


@pytest.fixture(scope="module")
def causal():
    return small("bert-tiny", "causal", "left")


@pytest.fixture(scope="module")
def order():
    return small("xlnet-base-cased", "permutation", kind="unigram")


def positions(model: cm.Model, text: str, word: str) -> list[int]:
    start = text.index(word)
    encoding = model.encode([text])[0]
    return [
        n
        for n, (first, after) in enumerate(encoding.offsets)
        if not encoding.special[n] and first < start + len(word) and after > start
    ]


def test_a_masked_model_looks_everywhere(masked):
    found = sight(masked, TEXT, positions(masked, TEXT, "capital"), [])
    assert found["names"] == ["Madrid", "is", "the", "capital", "of", "Spain", "."]
    assert found["gap"] == found["read"] == 3
    assert all(all(row) for row in found["seen"])


def test_a_causal_model_sees_a_triangle_and_reads_before_the_gap(causal):
    found = sight(causal, TEXT, positions(causal, TEXT, "capital"), [])
    assert (found["gap"], found["read"]) == (3, 2)
    # The gap's own column is closed: what is hidden is hidden from every other place.
    assert found["seen"] == [[x <= y and (x != 3 or y == 3) for x in range(7)] for y in range(7)]
    first = sight(causal, TEXT, positions(causal, TEXT, "Madrid"), [])
    assert first["read"] is None
    assert "nothing of the sentence is known yet" in said.knows(first)
    # A model that tells a piece from the place before it, and sees both sides from there.
    both = said.knows(first | {"reads": [True] * len(first["names"])})
    assert "before the first word, from where the model looks at “is”, “the”" in both
    assert "“is”，“the”" in spoken(both, "zh")  # a list has its language's commas


def test_a_query_sees_what_is_not_hidden(order):
    gap, other = positions(order, TEXT, "capital"), positions(order, TEXT, "Spain")
    found = sight(order, TEXT, gap[:1], [*gap[1:], *other])
    assert found["gap"] == found["read"] == 3
    assert found["seen"][3] == [x not in (3, 5) for x in range(7)]
    assert not any(row[5] for y, row in enumerate(found["seen"]) if y != 5)


def test_long_sentences_are_cut_around_the_gap(masked):
    text = "The lake is cold. " * 8
    place = masked.encode([text])[0].words.index(20)
    found = sight(masked, text, [place], [])
    assert len(found["names"]) == len(found["seen"]) == len(found["seen"][0]) == MOST_WORDS
    assert found["words"][found["gap"]] == 20
    assert found["words"] == list(range(found["words"][0], found["words"][0] + MOST_WORDS))


def test_a_gap_written_in_the_text_has_its_name(masked):
    text = "Madrid is the [MASK] of Spain."
    place = masked.encode([text])[0].ids.index(masked.tokenizer.mask_id)
    found = sight(masked, text, [place], [])
    assert found["names"] == ["Madrid", "is", "the", "[MASK]", "of", "Spain", "."]
    assert found["gap"] == 3


@pytest.mark.parametrize(("text", "gap"), [("Madrid  is", 1), ("Madrid is ", 2)])
def test_a_hidden_blank_stands_for_itself(text, gap):
    loaded = small("bert-tiny", "masked_token", kind="byte_bpe")
    (encoding,) = loaded.encode([text])
    place = next(n for n, (a, b) in enumerate(encoding.offsets) if b > a and not text[a:b].strip())
    found = sight(loaded, text, [place], [])
    names = ["Madrid", "is"]
    names.insert(gap, loaded.tokenizer.display(encoding.ids[place]))
    assert found["names"] == names
    assert found["gap"] == gap
    assert found["gap"] == found["read"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory, masked, causal):
    folder = tmp_path_factory.mktemp("models")
    masked.save(folder / "tiny-masked")
    causal.save(folder / "tiny-causal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        session.models()
        yield session
        session.close()


def ask(*hidden, **extra):
    marks = [{"position": position} for position in hidden]
    return {"rev": 3, "text": TEXT, "model": "tiny-masked", "marks": marks, **extra}


def bars(svg: str) -> list[float]:
    boxes = [box for box in ElementTree.fromstring(svg).iter(f"{SVG}rect") if box.get("rx") == "3"]
    widths = [float(box.get("width")) for box in boxes if box.get("x") == "250"]
    return widths[1::2]


def test_the_picture_of_the_predictions_has_their_probabilities(shown):
    answer = asyncio.run(mask.picture(shown, ask(1, 2)))
    result = fill(shown.model("tiny-masked"), TEXT, masks=[1, 2], top_k=5)
    expected = []
    for prediction in result.predictions:
        best = [c.probability for c in prediction.candidates]
        if prediction.original.id not in [c.id for c in prediction.candidates]:
            best.append(prediction.original.probability)
        expected += best
    assert bars(answer["svg"]) == pytest.approx([FULL * p for p in expected], abs=0.01)
    for asked in (ask(), ask(99)):
        with pytest.raises(InputError):
            asyncio.run(mask.picture(shown, asked))


def test_models_begin_with_one_that_reads_another_way(shown):
    answer = asyncio.run(mask_models.models(shown, ask(1)))
    assert [entry["name"] for entry in answer["models"]] == ["tiny-masked", "tiny-causal"]
    assert [entry["kind"] for entry in answer["models"]] == ["masked", "causal"]
    assert answer["said"] == said.ONE_SIDED
    assert said.LACKING not in answer["notes"]
    bare = asyncio.run(mask_models.models(shown, ask()))
    assert [said.of_model(entry)[::2] for entry in bare["models"]] == [[None, None]] * 2


def test_who_looks_at_whom_marks_the_hidden_word_and_the_row_that_is_read(shown):
    model = shown.model("tiny-masked")
    capital, spain = (positions(model, TEXT, word) for word in ("capital", "Spain"))
    question = ask(*capital, *spain, at=capital[0])
    found = asyncio.run(mask_models.models(shown, question))["models"]
    grids = [said.of_model(entry)[2] for entry in found]
    for grid, read in zip(grids, (3, 2), strict=True):
        assert [text for text in grid.layout.yaxis.ticktext if "<b>" in text] == ["<b>capital</b>"]
        assert [shape.y0 for shape in grid.layout.shapes] == [read - 0.5]
    seen = [[bool(cell) for cell in row[1:]] for row in grids[1].layout.meta["rows"]]
    assert seen == found[1]["sight"]["seen"]
    assert "which looks at “Madrid”, “is”, “the”." in said.knows(found[1]["sight"])
    assert grids[1].layout.meta["alt"] == said.knows(found[1]["sight"])
