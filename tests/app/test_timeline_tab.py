"""The Timeline lab without a browser: draws, contexts, lengths and formats against the core."""

import itertools
import random

import gradio as gr
import pytest
import torch

from app.labs.timeline import answers as timeline
from app.labs.timeline import formats as cutting
from app.labs.timeline import lab as tab
from core_models import InputError
from core_models.data import documents
from core_models.data.corpus import Corpus
from core_models.data.formats import examples
from core_models.data.layout import Layout
from core_models.data.similar import similar_words
from core_models.masking import spans as span_masking
from core_models.masking import tokens as masking
from core_models.masking.electra import with_replacement
from core_models.masking.tokens import generator_for
from core_models.tokenizer import Tokenizer
from viz.figure import payload

TEXT = "The capital of France is Paris , and its unbelievable museums are there ."
SETTING = {"kind": "uniform", "epochs": 20, "copies": 10, "seed": 1}
PICTURES = tuple(name for regime in tab.REGIMES for name in (regime, f"{regime} said"))
SHOWN = (*PICTURES, "said", "note", "regimes", "growth", "pieces", "lengths said", "lengths")
SHOWN += ("code",)


def describe(model, text=TEXT, **values):
    return timeline.describe(model.tokenizer, text, timeline.Setting(**{**SETTING, **values}))


def ask(session, *, text=TEXT, model="bert-mini", **values):
    """The answers by name."""
    question = {**SETTING, "sentence": {"text": text, "model": model}, **values}
    return dict(zip(SHOWN, tab.show(session, question), strict=True))


def cut(session, **values):
    question = {"model": {"model": "bert-mini"}, "length": 96, "seed": 1, **values}
    return tab.show_formats(session, question)


def rows(figure):
    return figure.layout.meta["rows"]


def calls(model):
    """Each kind by a call of the core with published values."""
    common = {"mask_id": model.tokenizer.mask_id, "rate": 0.15}
    whole = {**common, "vocabulary": model.tokenizer.vocabulary}
    weights = (1.0, 1 / 2, 1 / 3)
    return {
        "uniform": lambda i, o, w, n, g: masking.uniform(i, o, lengths=n, generator=g, **whole),
        "whole_word": lambda i, o, w, n, g: masking.whole_word(
            i, o, w, lengths=n, generator=g, **whole
        ),
        "ngram": lambda i, o, w, n, g: span_masking.ngrams(
            i, o, w, lengths=n, generator=g, weights=weights, **whole
        ),
        "windowed_ngram": lambda i, o, w, n, g: span_masking.windowed_ngrams(
            i, o, w, lengths=n, generator=g, weights=weights, **whole
        ),
        "span": lambda i, o, w, n, g: span_masking.spans(i, o, w, generator=g, **whole),
        "with_replacement": lambda i, o, w, n, g: with_replacement(
            i, o, lengths=n, generator=g, kept=0.15, **common
        ),
        "similar_word": lambda i, o, w, n, g: similar_words(
            i,
            o,
            w,
            table=timeline.similar(model.tokenizer),
            vocabulary=model.tokenizer.vocabulary,
            weights=(0.4, 0.3, 0.2, 0.1),
            lengths=n,
            generator=g,
        ),
    }


@pytest.mark.parametrize("kind", timeline.KINDS)
def test_every_draw_is_that_of_the_core(model, kind):
    found = describe(model, kind=kind, epochs=9, seed=5)
    encoding = model.tokenizer.encode(TEXT)
    ids = torch.tensor([encoding.ids])
    words = torch.tensor([[-1 if word is None else word for word in encoding.words]])
    length = torch.tensor([len(encoding)])
    plain = [n for n, special in enumerate(encoding.special) if not special]
    for n, visit in enumerate(found.regimes["dynamic"]["visits"]):
        source = [generator_for(5, n, 0)]
        masked = calls(model)[kind](ids, words >= 0, words, length, source)
        cases, inputs = masked.cases[0].tolist(), masked.inputs[0].tolist()
        assert visit.draw == n
        assert [mark[:1] for mark in visit.marks] == [["", *"MRKS"][cases[p]] for p in plain]
        assert visit.seen == [model.tokenizer.display(inputs[p]) for p in plain]
        if kind == "with_replacement":
            times = masked.times[0].tolist()
            drawn = [times[p] for p in plain if times[p] > 1]
            assert [int(mark[1:]) for mark in visit.marks if mark[1:]] == drawn


def test_macbert_puts_similar_words_and_says_which(session, model):
    """Words of one kind stand for each other, and the picture has no [MASK]."""
    found = describe(model, "The cat drinks milk in the kitchen.", kind="similar_word", epochs=40)
    pairs = dict(found.replaced())
    assert pairs.keys() <= set(found.pieces)
    assert len(pairs) > 4
    assert all(piece != seen for piece, seen in pairs.items())
    table = timeline.similar(model.tokenizer).neighbours
    (cat,) = model.tokenizer.encode_plain(["cat"])[0][0].tolist()
    assert pairs["cat"] == model.tokenizer.display(table[cat,][0][0])
    answer = ask(session, kind="similar_word", epochs=40)
    assert "Dynamic masking puts similar words: " in answer["said"]
    legend = [each.name for each in answer["dynamic"].data if each.name]
    assert legend[0].startswith("a similar word: ")
    assert not any("[MASK]" in name for name in legend)
    assert "similar" not in ask(session, kind="uniform")["said"]


def test_a_vocabulary_without_a_word_of_the_primer_puts_random_pieces():
    tokenizer = Tokenizer.train(["кошка сидит на ковре и смотрит на собаку"] * 5, vocabulary=100)
    setting = timeline.Setting(**{**SETTING, "kind": "similar_word"})
    found = timeline.describe(tokenizer, "кошка сидит на ковре", setting)
    marks = {mark for visit in found.regimes["dynamic"]["visits"] for mark in visit.marks}
    assert "R" in marks
    assert marks <= {"", "R", "K"}
    assert "random pieces" in tab.put("similar_word", found)
    assert timeline.lengths(tokenizer, "similar_word", 1)["counts"]["found"]


def test_regimes_visit_the_draws_they_should(model):
    regimes = describe(model, epochs=7, copies=3).regimes
    draws = {name: [visit.draw for visit in each["visits"]] for name, each in regimes.items()}
    assert draws["static"] == [0] * 7
    assert draws["copies"] == [0, 1, 2, 0, 1, 2, 0]
    assert draws["dynamic"] == list(range(7))
    assert regimes["static"]["inputs"] == 1
    assert regimes["copies"]["inputs"] <= 3 <= regimes["dynamic"]["inputs"]


def test_contexts_are_counted_by_hand():
    inputs = torch.tensor([[9, 1, 2], [9, 1, 2], [0, 9, 2], [9, 1, 5]])
    ignored = masking.IGNORED
    labels = torch.tensor(
        [[0, ignored, ignored], [0, ignored, ignored], [ignored, 1, ignored], [0, ignored, 2]]
    )
    found = timeline.contexts(
        masking.Masked(inputs, labels, (labels >= 0).to(torch.uint8)), [0, 1, 2, 3], 3
    )
    assert found["asked"] == [3, 1, 1]
    # The second draw is the first one again, so position 0 has two contexts.
    assert found["contexts"] == [2, 1, 1]
    assert found["growth"] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 4 / 3])
    assert found["inputs"] == 3


def test_copies_are_seen_four_times_in_forty_epochs(session, model):
    regimes = describe(model, epochs=40).regimes
    assert sum(regimes["dynamic"]["contexts"]) >= sum(regimes["copies"]["contexts"])
    for epochs, said in ((40, "is seen 4 times"), (25, "2 to 3 times"), (10, "no mask has come")):
        assert said in ask(session, epochs=epochs)["copies said"]
    once = ask(session, copies=1)
    assert once["copies said"] == once["static said"]


def test_seeds_replay(model):
    assert describe(model, seed=2) == describe(model, seed=2)
    assert describe(model, seed=2).regimes != describe(model, seed=3).regimes


def test_published_lengths(session):
    def shares(kind):
        """Published, drawn and found shares, and the means, as the chart has them."""
        figure = ask(session, kind=kind)["lengths"]
        bars = [[share / 100 for share in trace.y] for trace in figure.data]
        return *bars, rows(figure)[-1][1:]

    *span, means = shares("span")
    wanted = [0.224, 0.179, 0.143, 0.115, 0.092, 0.073, 0.059, 0.047, 0.038, 0.030]
    assert span[0] == pytest.approx(wanted, abs=6e-4)
    assert means[0] == pytest.approx(3.797, abs=1e-3)
    *ngram, means = shares("ngram")
    assert ngram[0] == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert means[0] == pytest.approx(18 / 11)
    for published, drawn, found in (span, ngram):
        assert drawn == pytest.approx(published, abs=0.03)
        assert sum(drawn) == pytest.approx(1)
        assert sum(found) == pytest.approx(1)
        assert len(found) == len(published) + 1
    answer = ask(session, kind="uniform")
    assert answer["lengths"] is None
    assert answer["lengths said"].startswith("This masking has no law of lengths")


def test_contexts_grow_and_are_counted_as_is_said(session, model):
    answer, regimes = ask(session, epochs=5), describe(model, epochs=5).regimes
    assert [row[0] for row in rows(answer["growth"])] == [1, 2, 3, 4, 5]
    for place, (name, seen) in enumerate(regimes.items()):
        assert [row[place + 1] for row in rows(answer["growth"])] == seen["growth"]
        table = answer["pieces"]["rows"]
        assert [row[1 + 2 * place] for row in table] == seen["asked"]
        assert [row[2 + 2 * place] for row in table] == seen["contexts"]
        _, inputs, ever, asked, contexts = answer["regimes"]["rows"][place]
        count = len(seen["asked"])
        assert inputs == seen["inputs"]
        assert ever == f"{sum(map(bool, seen['asked']))} of {count}"
        assert asked[0] == pytest.approx(sum(seen["asked"]) / count)
        assert contexts[0] == pytest.approx(seen["growth"][-1])
        assert f"{contexts[0]:.1f} " in answer["said"].replace(name, " ")


@pytest.mark.parametrize("name", cutting.FORMATS)
def test_formats_are_those_of_the_core(model, name):
    shown = cutting.formats(model.tokenizer, 64, 4)[name]
    files = sorted(cutting.PRIMER.glob("english-*.txt"))
    texts = list(itertools.islice(documents.read(files), cutting.DOCUMENTS))
    corpus = Corpus.encode(texts, model.tokenizer)
    found = list(examples(name, corpus, range(6), max_length=64, generator=random.Random(4)))
    batch = cutting.pack(Layout.of(model.tokenizer), corpus, found)
    assert shown.examples == len(found)
    labels = {-100: "", 0: " next", 1: " random"}
    assert [each.said for each in shown.shown] == [
        f"{size}{labels[label]}"
        for size, label in zip(
            batch.lengths.tolist()[:12], batch.pair_labels.tolist()[:12], strict=True
        )
    ]
    assert shown.mean == pytest.approx(float(batch.lengths.float().mean()))
    assert shown.filled == pytest.approx(float(batch.lengths.sum()) / (64 * len(found)))
    inside = [len({run.document for run in each.runs}) for each in shown.shown]
    if name == "doc_sentences":
        assert set(inside) == {1}
    if name == "full_sentences":
        assert max(inside) > 1
    for each, documents_in_it in zip(shown.shown, inside, strict=True):
        paired = any(run.second for run in each.runs)
        assert not paired or (documents_in_it > 1) == each.said.endswith("random")


def test_formats_are_drawn_to_scale(session):
    facts, *pictures = cut(session, length=64)
    assert [row[0] for row in facts["rows"]] == [*cutting.FORMATS.values()]
    for figure in pictures:
        blocks = [
            (number, start, start + pieces)
            for trace in figure.data
            for number, start, pieces in zip(trace.y, trace.base, trace.x, strict=True)
        ]
        assert max(end for _, _, end in blocks) <= 64
        assert len(blocks) == len(rows(figure))
        for (number, _, end), (following, start, _) in itertools.pairwise(sorted(blocks)):
            assert start == (end if number == following else 0)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"kind": "own"}, "must be one of uniform"),
        ({"kind": ["span"]}, "must be one of uniform"),
        ({"epochs": 10**6}, "whole number from 1 to 40"),
        ({"copies": 0}, "whole number from 1 to 20"),
        ({"seed": "1"}, "whole number"),
        ({"seed": None}, "whole number"),
        ({"text": " "}, "no text yet"),
        ({"model": "none"}, "no model"),
    ],
)
def test_bad_input_is_explained(session, values, match):
    with pytest.raises(InputError, match=match):
        ask(session, **values)


def test_a_strange_length_of_examples_is_explained(session):
    with pytest.raises(InputError, match="whole number from 32 to 256"):
        cut(session, length=8)


def test_nothing_is_answered_before_the_lab_is_seen(session):
    found = [*tab.show(session, {**SETTING, "sentence": None}), *cut(session, model=None)]
    assert all(each == gr.skip() for each in found)


@pytest.mark.parametrize("text", ["a", "word " * 600, "[MASK] [MASK] [MASK]", "北京是中国的首都。"])
@pytest.mark.parametrize("kind", timeline.KINDS)
def test_odd_texts_work(session, model, text, kind):
    found = describe(model, text, kind=kind, epochs=3)
    assert len(found.pieces) <= timeline.MOST_PIECES
    assert found.truncated is (len(text) > 100)
    said = ask(session, text=text, kind=kind, epochs=3)["note"]
    assert ("uses its first" in said) is found.truncated


def test_pictures_hold_every_mask(session, model):
    text = "a <b> & ${x}"
    answer, found = ask(session, text=text, epochs=6), describe(model, text, epochs=6)
    for name, seen in found.regimes.items():
        figure = answer[name]
        wanted = [
            [epoch, visit.draw + 1, place + 1, found.pieces[place], mark, visit.seen[place]]
            for epoch, visit in enumerate(seen["visits"], 1)
            for place, mark in enumerate(visit.marks)
            if mark
        ]
        assert rows(figure) == wanted
        draws = len({visit.draw for visit in seen["visits"]})
        assert figure.layout.meta["alt"].endswith(f"draws {draws}"), "1 masks is wrong"
        legend = [trace.name for trace in figure.data if trace.showlegend is None and trace.name]
        for letter, said in zip("MRK", legend, strict=True):
            count = sum(row[4][0] == letter for row in wanted)
            assert f": {count} of {len(wanted)} (" in said
        below = zip(seen["asked"], seen["contexts"], strict=True)
        assert figure.layout.xaxis2.ticktext == tuple(f"{a}<br>{c}" for a, c in below)
        assert "&lt;" in [note.text for note in figure.layout.annotations]
        assert payload(figure)["words"]


def test_the_code_loads_the_model_of_a_run_from_its_folder(session, model, monkeypatch):
    monkeypatch.setattr(session, "model", lambda name: model)
    assert "cm.load('runs/mine/model')" in ask(session, model="run/mine")["code"]


@pytest.mark.parametrize("kind", timeline.KINDS)
def test_the_shown_code_recomputes_the_masks(session, model, kind, capsys):
    exec(ask(session, kind=kind, epochs=3)["code"], {})
    printed = capsys.readouterr().out.splitlines()
    visits = describe(model, kind=kind, epochs=3).regimes["dynamic"]["visits"]
    for line, visit in zip(printed, visits, strict=True):
        cases = [["", *"MRKS"].index(mark[:1]) for mark in visit.marks]
        assert line.startswith(str([0, *cases, 0]))
        assert line.count("[MASK]") == cases.count(1)
