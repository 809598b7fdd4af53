"""The Timeline tab without a browser: draws, contexts, lengths and formats against the core."""

import asyncio
import csv
import io
import itertools
import random
from collections import Counter
from functools import partial
from xml.etree import ElementTree

import pytest
import torch

from app.labs.timeline import answers as timeline
from app.labs.timeline import formats as timeline_formats
from app.labs.timeline import lab as tab
from app.parts.views import answered
from core_models import masking, span_masking
from core_models.data import documents
from core_models.data.corpus import Corpus
from core_models.data.formats import examples
from core_models.data.layout import Layout
from core_models.masking import generator_for
from core_models.masking_electra import with_replacement
from viz.timeline import timeline_svg

TEXT = "The capital of France is Paris , and its unbelievable museums are there ."


def ask(session, answer=tab.show, **values):
    question = {"rev": 7, "text": TEXT, "model": "bert-mini", **values}
    found = asyncio.run(answered(partial(answer, session), question))
    assert found["rev"] == 7
    return found


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
    }


@pytest.mark.parametrize("kind", timeline.KINDS)
def test_every_draw_is_that_of_the_core(session, model, kind):
    answer = ask(session, kind=kind, epochs=9, seed=5)
    encoding = model.tokenizer.encode(TEXT)
    ids = torch.tensor([encoding.ids])
    words = torch.tensor([[-1 if word is None else word for word in encoding.words]])
    length = torch.tensor([len(encoding)])
    for n, shown in enumerate(answer["draws"]):
        source = [generator_for(5, n, 0)]
        masked = calls(model)[kind](ids, words >= 0, words, length, source)
        letters = "".join(".MRK"[case] for case in masked.cases[0].tolist())
        assert shown["cases"] == letters
        for position, text in shown["random"].items():
            assert text == model.tokenizer.display(int(masked.inputs[0, int(position)]))
        assert len(shown["random"]) == letters.count("R")
    for found in answer["regimes"].values():
        total = Counter("".join(answer["draws"][n]["cases"] for n in found["visits"]))
        assert found["cases"] == {case: total[case] for case in "MRK"}


def test_regimes_visit_the_draws_they_should(session):
    regimes = ask(session, epochs=7, copies=3)["regimes"]
    assert regimes["static"]["visits"] == [0] * 7
    assert regimes["copies"]["visits"] == [0, 1, 2, 0, 1, 2, 0]
    assert regimes["dynamic"]["visits"] == list(range(7))
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


def test_copies_are_seen_four_times_in_forty_epochs(session):
    answer = ask(session, epochs=40, copies=10)
    assert set(Counter(answer["regimes"]["copies"]["visits"]).values()) == {4}
    dynamic = answer["regimes"]["dynamic"]
    assert sum(dynamic["contexts"]) >= sum(answer["regimes"]["copies"]["contexts"])


def test_seeds_replay(session):
    assert ask(session, seed=2)["draws"] == ask(session, seed=2)["draws"]
    assert ask(session, seed=2)["draws"] != ask(session, seed=3)["draws"]


def test_published_lengths(session):
    def shares(kind):
        """Published, drawn and found shares, and the means, as the chart has them."""
        figure = ask(session, kind=kind)["figures"]["lengths"]
        bars = [[share / 100 for share in trace["y"]] for trace in figure["data"]]
        return *bars, figure["layout"]["meta"]["rows"][-1][1:]

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
    assert ask(session, kind="uniform")["figures"]["lengths"] is None


def test_contexts_grow_as_the_chart_says(session):
    answer = ask(session, epochs=5)
    rows = answer["figures"]["growth"]["layout"]["meta"]["rows"]
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5]
    for place, name in enumerate(answer["regimes"], 1):
        assert [row[place] for row in rows] == answer["regimes"][name]["growth"]


@pytest.mark.parametrize("name", timeline_formats.FORMATS)
def test_formats_are_those_of_the_core(session, model, name):
    answer = ask(session, tab.formats, length=64, seed=4)
    shown = next(entry for entry in answer["formats"] if entry["name"] == name)
    files = sorted(timeline_formats.PRIMER.glob("english-*.txt"))
    texts = list(itertools.islice(documents.read(files), timeline_formats.DOCUMENTS))
    corpus = Corpus.encode(texts, model.tokenizer)
    found = list(examples(name, corpus, range(6), max_length=64, generator=random.Random(4)))
    batch = timeline_formats.pack(Layout.of(model.tokenizer), corpus, found)
    assert shown["examples"] == len(found)
    assert [e["length"] for e in shown["shown"]] == batch.lengths.tolist()[:12]
    assert [e["label"] if e["label"] is not None else -100 for e in shown["shown"]] == (
        batch.pair_labels.tolist()[:12]
    )
    assert shown["mean"] == pytest.approx(float(batch.lengths.float().mean()))
    assert shown["filled"] == pytest.approx(float(batch.lengths.sum()) / (64 * len(found)))
    inside = [len({part["document"] for part in e["parts"]}) for e in shown["shown"]]
    if name == "doc_sentences":
        assert set(inside) == {1}
    if name == "full_sentences":
        assert max(inside) > 1
    for entry in shown["shown"]:
        crosses = len({part["document"] for part in entry["parts"]}) > 1
        assert entry["label"] is None or crosses == (entry["label"] == 1)


@pytest.mark.parametrize(
    ("answer", "values", "match"),
    [
        (tab.show, {"kind": "own"}, "must be one of uniform"),
        (tab.show, {"kind": ["span"]}, "must be one of uniform"),
        (tab.show, {"epochs": 10**6}, "whole number from 1 to 40"),
        (tab.show, {"copies": 0}, "whole number from 1 to 20"),
        (tab.show, {"seed": "1"}, "whole number"),
        (tab.show, {"text": " "}, "no text yet"),
        (tab.show, {"model": "none"}, "no model"),
        (tab.formats, {"length": 8}, "whole number from 32 to 256"),
        (tab.export, {"what": "exe"}, "svg or csv"),
        (tab.export, {"what": ["svg"]}, "svg or csv"),
        (tab.export, {"what": "svg", "regime": "x"}, "one of static, copies, dynamic, all"),
    ],
)
def test_bad_input_is_explained(session, answer, values, match):
    assert match in ask(session, answer, **values)["error"]


@pytest.mark.parametrize("text", ["a", "word " * 600, "[MASK] [MASK] [MASK]", "北京是中国的首都。"])
@pytest.mark.parametrize("kind", timeline.KINDS)
def test_odd_texts_work(session, text, kind):
    answer = ask(session, text=text, kind=kind, epochs=3)
    assert answer["error"] is None
    assert len(answer["tokens"]) <= timeline.MOST_PIECES
    assert answer["truncated"] is (len(text) > 100)


def test_files_hold_every_mask(session):
    answer = ask(session, epochs=6, copies=2)
    file = ask(session, tab.export, epochs=6, copies=2, what="csv")
    rows = list(csv.DictReader(io.StringIO(file["text"])))
    wanted = sum(
        sum(letter != "." for letter in answer["draws"][n]["cases"])
        for found in answer["regimes"].values()
        for n in found["visits"]
    )
    assert len(rows) == wanted
    svg = ask(session, tab.export, what="svg", regime="copies", text="a <b> & ${x}")["text"]
    ElementTree.fromstring(svg)
    assert svg.count("masking with copies") == 2, "once as it is drawn, once as its key"
    every = ask(session, tab.export, what="svg", regime="all")["text"]
    for said in ("static masking", "dynamic masking", "it sees the piece itself"):
        assert said in every


@pytest.mark.parametrize("kind", timeline.KINDS)
def test_the_shown_code_recomputes_the_masks(session, kind, capsys):
    answer = ask(session, kind=kind, epochs=3)
    exec(answer["code"], {})
    printed = capsys.readouterr().out.splitlines()
    for line, shown in zip(printed, answer["draws"], strict=True):
        cases = [".MRK".index(letter) for letter in shown["cases"]]
        assert line.startswith(str(cases))


def test_the_picture_has_a_letter_per_case():
    drawn = [("one", [".MK", "R.."]), ("two", ["K.."])]
    svg = timeline_svg(drawn, ["a", "b", "<c>"], title="t", legend=[("M", "what it sees")])
    texts = [node.text for node in ElementTree.fromstring(svg).iter()]
    assert [text for text in texts if text in set("MRK")] == ["M", "M", "K", "R", "K"]
    assert {"one", "two", "what it sees"} < set(texts)
    for bad in ([("one", ["."])], [("one", [])], []):
        with pytest.raises(ValueError, match="one letter per piece"):
            timeline_svg(bad, ["a", "b"], title="t")
