"""The sections of the Mask tab without a browser: what they show is what core_models computes."""

import asyncio
import math
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import core_models as cm
from app.labs.mask import models as mask_models
from app.labs.mask import said
from app.labs.mask import sections as mask_sections
from app.labs.mask.scene import in_other_pieces, per_word, scene, words_of
from app.page import sentence
from app.serving.ask import Ask, Mark
from app.serving.session import Session
from core_models import InputError
from core_models.data import documents
from core_models.prediction import fill, lens, score
from core_models.tokenizer import Tokenizer
from tests.core.tiny_models import narrow

TEXT = "Madrid is the capital of Spain."
FRANCE = "The capital of France is Paris."
MODEL = "bert-mini"


def small(name: str, tokenizer: Tokenizer, head: str, direction: str = "both") -> cm.Model:
    config = cm.size(name).with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
    config = narrow(config, width=32, inner=64)
    config = replace(config, attention=replace(config.attention, direction=direction))
    return cm.Model.new(
        config, tokenizer, heads=[head], generator=torch.Generator().manual_seed(4)
    ).eval()


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A session over the shipped model and small ones of other kinds and of another family."""
    folder = tmp_path_factory.mktemp("models")
    files = sorted((Path(__file__).parents[2] / "assets" / "primer").glob("english-*.txt"))
    sentences = [sentence for document in documents.read(files[:1]) for sentence in document][:2000]
    unigram = Tokenizer.train(sentences, vocabulary=800, kind="unigram")
    pieces = Tokenizer.train(sentences, vocabulary=800)
    small("xlnet-base-cased", unigram, "permutation").save(folder / "tiny-order")
    small("bert-tiny", pieces, "causal", "left").save(folder / "tiny-causal")
    small("electra-small", pieces, "replaced_token").save(folder / "tiny-judge")
    small("spanbert-base-cased", pieces, "masked_token").save(folder / "a-span")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        session.models()
        yield session
        session.close()


def ask(session, section, *hidden, model=MODEL, text=TEXT, **extra):
    marks = [{"position": position, "case": "mask"} for position in hidden]
    question = {"text": text, "model": model, "marks": marks, **extra}
    return asyncio.run(section(session, question))


def run(code: str) -> None:
    """The lines that recompute an answer must run as they are."""
    exec(compile(code, "code", "exec"), {"print": lambda *_: None})


def rows(answer) -> list[list]:
    """Of the table beside the chart."""
    return answer["shown"][-1].layout.meta["rows"]


def test_together_shows_where_independence_fails(others):
    answer = ask(others, mask_sections.together, 4, 6, text=FRANCE)
    alone, left, sure, beam = (fillings[0] for fillings in answer["ways"])
    plain = fill(others.model(MODEL), FRANCE, masks=[4, 6], top_k=1).predictions
    assert [c["id"] for c in alone["choices"]] == [p.candidates[0].id for p in plain]
    product = math.log(plain[0].candidates[0].probability * plain[1].candidates[0].probability)
    assert alone["apart"] == pytest.approx(product, rel=1e-3)
    assert alone["chained"] < alone["apart"]
    assert left["chained"] > alone["chained"]
    assert beam["chained"] >= left["chained"] - 1e-4
    assert sure["total"] == pytest.approx(sum(c["log_probability"] for c in sure["choices"]))
    assert len(answer["ways"][3]) == mask_sections.WIDTH
    assert [c["piece"] for c in answer["own"]["choices"]] == ["france", "paris"]
    shown = rows(answer)
    assert [row[0] for row in shown] == [said.WAYS[way] for way in (*mask_sections.WAYS, "given")]
    assert [row[4] for row in shown[:4]] == [way[0]["apart"] for way in answer["ways"]]
    assert [row[5] for row in shown[:4]] == [way[0]["chained"] for way in answer["ways"]]
    best = " … ".join(p.candidates[0].display for p in plain)
    assert f"“{best}”" in answer["said"]
    assert "The beam also kept" in answer["notes"][0]
    run(answer["code"])


def test_words_of_any_length(others):
    answer = ask(others, mask_sections.word, 1, rivals=["london", "chrysanthemums"])
    assert [entry["word"] for entry in answer["words"]] == ["Madrid", "london", "chrysanthemums"]
    watched = fill(others.model(MODEL), TEXT, masks=[1], watch=["london"]).predictions[0].watched
    assert math.exp(answer["words"][1]["log_probability"]) == pytest.approx(
        watched[0].probability, rel=1e-3
    )
    assert len(answer["words"][2]["steps"]) == len(answer["words"][2]["pieces"]) > 3
    for entry in answer["words"]:
        mine = [row for row in rows(answer) if row[0] == entry["word"]]
        assert [row[1] for row in mine] == list(entry["pieces"])
        assert sum(row[3] for row in mine) == pytest.approx(entry["log_probability"])
        assert mine[0][5] == pytest.approx(entry["log_probability"])
    assert "“chrysanthemums” is" in answer["said"]
    run(answer["code"])


def test_a_hidden_word_of_several_pieces_is_one_gap(others):
    text = "A glacier is a river of ice."
    answer = ask(others, mask_sections.word, 2, 3, 4, text=text)
    assert answer["gaps"] == [{"positions": [2, 3, 4], "text": "glacier"}]
    assert answer["words"][0]["pieces"] == ["gl", "ac", "ier"]


@pytest.mark.parametrize(
    ("model", "text"),
    [(MODEL, "The language of Bulgaria is Bulgarian."), ("tiny-order", FRANCE), (MODEL, FRANCE)],
)
def test_every_piece_of_the_text_is_scored_as_it_stands_there(others, model, text):
    tokens = scene(Ask(text=text, model=model), others.model(model)).tokens
    for token in [token for token in tokens if not token.special]:
        answer = ask(
            others, mask_sections.word, token.position, model=model, text=text, rivals=["yes"]
        )
        own, rival = answer["words"]
        (known,) = fill(others.model(model), text, masks=[token.position]).predictions
        assert own["word"] == token.text == answer["own"]
        assert rival["word"] == "yes"
        assert own["pieces"] == [others.model(model).tokenizer.display(token.id)]
        assert math.exp(own["log_probability"]) == pytest.approx(
            known.original.probability, rel=1e-3
        )
        run(answer["code"])


def test_layers_are_those_of_the_lens(others):
    answer = ask(others, mask_sections.layers, 1, 6, at=6, rivals=["france", "chrysanthemums"])
    result = lens(others.model(MODEL), TEXT, 6, masks=[1], watch=["france"])
    line = next(line for line in answer["lines"] if line["word"] == "france")
    assert line["ranks"] == [row.prediction.watched[0].rank for row in result.layers]
    own = next(line for line in answer["lines"] if "own" in line["kinds"])
    assert own["ranks"] == [row.prediction.original.rank for row in result.layers]
    assert next(line for line in answer["lines"] if "best" in line["kinds"])["ranks"][-1] == 1
    assert answer["names"] == ["input", "1", "2", "3", "4"]
    assert len(answer["notes"]) == 1
    run(answer["code"])


def test_models_answer_through_their_own_heads(others):
    names = [MODEL, "tiny-causal", "tiny-order", "tiny-judge"]
    answer = ask(others, mask_models.models, 1, models=names)
    found = {entry["name"]: entry for entry in answer["models"]}
    assert [found[name].get("kind") for name in names] == ["masked", "causal", "order", None]
    assert "fills no gaps" in found["tiny-judge"]["error"]
    for name in names[:3]:
        assert len(found[name]["fillings"]) == mask_models.WIDTH
        (own,) = score(others.model(name), [TEXT])
        assert sum(found[name]["words"]) == pytest.approx(own.total, rel=1e-4)
        mean = own.total / len(answer["words"])
        assert found[name]["perplexity"] == pytest.approx(math.exp(-mean), rel=1e-3)
    chart = said.each_word(answer["models"], answer["words"])
    assert chart.layout.meta["columns"] == ["Word", *names[:3]]
    for number, name in enumerate(names[:3], start=1):
        logs = [math.log(row[number]) for row in chart.layout.meta["rows"][:-1]]
        assert logs == pytest.approx(found[name]["words"])
    shown = [said.of_model(found[name]) for name in names]
    assert [bars and len(bars.layout.meta["rows"]) for bars, *_ in shown] == [6, 6, 6, None]
    assert "fills no gaps" in shown[3][1]


def test_nobody_waits_while_the_models_of_the_runs_are_listed(others, monkeypatch):
    """With 200 runs that takes a second after a start: not of the thread that answers all."""
    threads, real = [], others.choices

    def choices():
        threads.append(threading.current_thread())
        return real()

    monkeypatch.setattr(others, "choices", choices)
    ask(others, mask_models.models, 1)
    assert threads
    assert threading.current_thread() not in threads


def test_a_model_stands_at_first_beside_its_twin_that_reads_otherwise(others):
    def pair(name):
        return [entry["name"] for entry in ask(others, mask_models.models, 1, model=name)["models"]]

    assert pair("tiny-causal") == ["tiny-causal", MODEL]  # not a-span, the first by name
    assert pair(MODEL) == [MODEL, "tiny-causal"]
    assert pair("a-span") == ["a-span", "tiny-causal"]


def test_models_without_a_gap_still_score_the_sentence(others):
    answer = ask(others, mask_models.models)
    assert answer["at"] is None
    assert len(answer["models"]) == 2
    assert answer["models"][0]["gap"] is None
    assert len(answer["models"][0]["words"]) == len(answer["words"]) == 7


def test_gaps_move_into_other_pieces(others):
    """A gap and a [MASK] of the text, in a vocabulary that cuts and writes them otherwise."""
    text = "[MASK] is the capital of Spain."
    seen = scene(Ask(text=text, model=MODEL, marks=(Mark(position=6),)), others.model(MODEL))
    other = others.model("tiny-order")
    moved, mine, rest = in_other_pieces(seen, seen.gaps[1], other)
    encoding = other.encode([moved])[0]
    shown = "".join(moved[slice(*encoding.offsets[p])] for p in mine)
    assert shown.strip() == "Spain"
    assert [encoding.ids[p] for p in rest] == [other.tokenizer.mask_id]


@pytest.mark.parametrize(
    ("name", "load"),
    [("bert-mini", "bert-mini"), ("run/mine", "runs/mine/model"), ("hub/a/b", "a/b")],
)
def test_the_code_loads_what_the_core_knows(others, name, load):
    found = scene(Ask(text=TEXT, model=name, marks=(Mark(position=4),)), others.model(MODEL))
    assert f"cm.load({load!r})" in found.code(others, [], [])


def test_words_by_eye():
    text = "It's 3.5 °C, 我们去 well-known [MASK]."
    assert [text[a:b] for a, b in words_of(text)] == [
        "It's", "3", ".", "5", "°", "C", ",", "我", "们", "去", "well-known", "[MASK]", ".",
    ]  # fmt: skip


def test_models_that_are_gone_leave_the_usual_ones(others):
    gone = ask(others, mask_models.models, 1, models=["run/deleted"])["models"]
    usual = ask(others, mask_models.models, 1)["models"]
    assert [entry["name"] for entry in gone] == [entry["name"] for entry in usual] != []
    one = ask(others, mask_models.models, 1, models=["run/deleted", "a-span"])["models"]
    assert [entry["name"] for entry in one] == ["a-span"]


def test_a_word_of_too_many_pieces_is_named(others):
    """By the model that cuts it so; one that knows no letter of it reads it as one piece."""
    word = "qxzvkjwp" * 3
    text = f"The {word} sleeps."
    pieces = len(others.model(MODEL).tokenizer.pieces_of(word))
    assert pieces > 16
    positions = range(2, 2 + pieces)
    (entry,) = ask(others, mask_models.models, *positions, text=text, models=[MODEL])["models"]
    assert entry["error"] == f"“{word}” is {pieces} pieces here; at most 16 fit."


def test_every_summand_belongs_to_one_word(others):
    model = others.model(MODEL)
    text = "A volcano throws out hot rock, doesn't it?"
    (result,) = score(model, [text])
    sums = per_word(result, model.encode([text])[0], words_of(text))
    assert sum(value for value in sums if value is not None) == pytest.approx(result.total)


def test_a_word_without_a_piece_has_neither_rank_nor_probability(others):
    """What stands at its place is [UNK], which is a word of nobody's sentence."""
    text = "I saw a 🦖 in Spain."
    found = ask(others, mask_sections.layers, 4, text=text)
    assert [line["kinds"] for line in found["lines"]] == [["best"], ["second"]]
    assert found["notes"] == [
        "“🦖” is not in the model's vocabulary: it has neither a rank nor a probability."
    ]
    assert "[UNK]" not in found["shown"][0].to_json()
    found = ask(others, mask_sections.together, 4, 6, text=text)
    assert found["own"] is None
    assert len(found["notes"]) == 1
    assert "Your words" not in [row[0] for row in rows(found)]
    (entry,) = ask(others, mask_models.models, 4, text=text, models=[MODEL])["models"]
    assert entry["own"] is None
    assert "neither a rank" in entry["note"]
    assert [value is None for value in entry["words"]] == [n == 3 for n in range(7)]
    known = [value for value in entry["words"] if value is not None]
    assert entry["perplexity"] == pytest.approx(math.exp(-sum(known) / 6))
    # The rest of a text is answered as before.
    assert ask(others, mask_sections.together, 6, text=text)["own"] is not None


EVERY = (mask_sections.together, mask_sections.word, mask_sections.layers, mask_models.models)


@pytest.mark.parametrize("section", EVERY[:3])
def test_nothing_hidden_is_said_plainly(others, section):
    with pytest.raises(InputError, match="hid"):
        ask(others, section)


@pytest.mark.parametrize("section", EVERY)
def test_bad_questions_are_refused(others, section):
    for values in ({"model": "no-such"}, {"text": " "}):
        with pytest.raises(InputError):
            ask(others, section, 1, **values)
    with pytest.raises(InputError):
        ask(others, section, 99)


def test_what_is_too_much_or_strange_is_refused(others):
    with pytest.raises(InputError, match="too many to fill"):
        ask(others, mask_sections.together, *range(1, 20), text="a " * 30)
    for models in ([MODEL] * 9, "x"):
        with pytest.raises(InputError, match="at most 4"):
            ask(others, mask_models.models, 1, models=models)
    with pytest.raises(InputError):
        ask(others, mask_sections.layers, 1, rivals="london")
    assert ask(others, mask_sections.word, 1, at={"a": 1})["at"] == 1


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Madrid is in Spain .", "."),
        ("Madrid , [MASK] , Rome", ","),
        ("Is it [MASK]  ?", "?"),
        ("It is a lake 。", "。"),
        (TEXT, None),
        ("It is .5 or .com", None),
        (". Madrid", None),
    ],
)
def test_a_blank_before_a_mark_is_told_where_it_is_read(others, text, mark):
    """A piece of its own for a unigram vocabulary; WordPiece cuts at blanks and never sees it."""
    notes = {name: sentence.read(others, text, name)["notes"] for name in (MODEL, "tiny-order")}
    assert not any("blank" in note for note in notes[MODEL])
    told = [note for note in notes["tiny-order"] if "blank" in note]
    assert [note.split("“")[1][0] for note in told] == ([mark] if mark else [])
    if "[" not in text:
        found = ask(others, mask_models.models, 1, text=text, models=[MODEL, "tiny-order"])
        assert [entry["note"] for entry in found["models"]] == [None, *(told or [None])]


def test_a_long_text_is_not_scored_word_by_word(others):
    answer = ask(others, mask_models.models, 1, text="The lake is cold. " * 30, models=[MODEL])
    assert said.LONG in answer["notes"]
    assert answer["models"][0]["words"] is None
    assert answer["models"][0]["fillings"]


def test_a_model_with_an_order_hides_all_drawn_words(others):
    """Its fill refuses words that are replaced or kept."""
    long = " ".join([TEXT] * 12)
    drawn = asyncio.run(others.random_mask(long, "tiny-order", seed=3, rate=0.5))
    assert len(drawn.marks) > 10
    assert {mark.case for mark in drawn.marks} == {"mask"}
    result = asyncio.run(others.fill(Ask(text=long, model="tiny-order", marks=drawn.marks)))
    assert len(result.predictions) == len(drawn.marks)
    masked = asyncio.run(others.random_mask(long, MODEL, seed=3, rate=0.5))
    assert {mark.case for mark in masked.marks} > {"mask"}
