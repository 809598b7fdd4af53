"""The service without a browser: answers, draws, models, checks."""

import asyncio
import errno
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import core_models as cm
from app.labs.mask import lab as mask
from app.serving import passes
from app.serving.ask import Ask, Mark
from app.serving.draws import LAWS
from app.serving.pieces import sentence_tokens
from app.serving.session import Session
from core_models import InputError
from core_models.masking import spans as span_masking
from core_models.prediction import fill
from core_models.tokenizer import Tokenizer

TEXT = "The capital of France is Paris."
MODELS = Path(__file__).parents[2] / "assets" / "models"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with two small random models, tiny and other."""
    folder = tmp_path_factory.mktemp("models")
    lines = [TEXT, "Bees make honey , and the bees fly from flower to flower ."] * 4
    tokenizer = cm.Tokenizer.train(lines, vocabulary=150)
    config = cm.size("bert-mini").with_vocabulary(tokenizer.vocabulary)
    for seed, name in enumerate(("tiny", "other")):
        generator = torch.Generator().manual_seed(seed)
        cm.Model.new(config, tokenizer, generator=generator).save(folder / name)
    return folder


@pytest.fixture
def session(models, monkeypatch):
    monkeypatch.setenv("CLOZE_MODELS", str(models))
    session = Session()
    yield session
    session.close()


def together(*coroutines):
    async def gather():
        return await asyncio.gather(*coroutines, return_exceptions=True)

    return asyncio.run(gather())


def test_fill_equals_the_cores_own(session):
    marks = (
        Mark(position=2),
        Mark(position=4, case="random", piece=9),
        Mark(position=6, case="kept"),
    )
    ask = Ask(text=TEXT, model="tiny", marks=marks, top_k=3, words=("bees",))
    (answer,) = together(session.fill(ask))
    expected = fill(
        cm.load("tiny"), TEXT, masks=[2], replaced={4: 9}, kept=[6], top_k=3, watch=["bees"]
    )
    assert [p.position for p in answer.predictions] == [2, 4, 6]
    for mine, theirs in zip(answer.predictions, expected.predictions, strict=True):
        assert mine.original.rank == theirs.original.rank
        assert [c.id for c in mine.candidates] == [c.id for c in theirs.candidates]
        assert mine.candidates[0].probability == pytest.approx(theirs.candidates[0].probability)


def test_many_at_once_get_each_their_own_answer(session):
    asks = [
        Ask(text=f"{'Bees make honey . ' * n}Paris", model=name, marks=(Mark(position=1),))
        for n in range(1, 12)
        for name in ("tiny", "other")
    ]
    answers = together(*(session.fill(ask) for ask in asks))
    for ask, answer in zip(asks, answers, strict=True):
        expected = fill(cm.load(ask.model), ask.text, masks=[1])
        assert answer.text == ask.text
        mine, theirs = answer.predictions[0], expected.predictions[0]
        assert mine.candidates[0].probability == pytest.approx(
            theirs.candidates[0].probability, rel=1e-4
        )


def test_mixed_answers_to_32_threads(gate, models, monkeypatch):
    """Each is what the question gets alone; together with others it may differ by rounding."""
    monkeypatch.setenv("CLOZE_MODELS", str(models))
    asked, draw = Session(cache_bytes=1), gate.random()
    words = TEXT.split() * 3

    def ask():
        text = " ".join(draw.sample(words, draw.randint(3, len(words))))
        places = sorted(draw.sample(range(1, 4), draw.randint(1, 3)))
        marks = tuple(Mark(position=place) for place in places)
        return Ask(text=text, model=draw.choice(("tiny", "other")), marks=marks, top_k=5)

    asks = [(draw.choice(("fill", "fill", "attention", "mask")), ask()) for _ in range(40)]

    async def answer(kind, ask):
        if kind == "mask":
            return await asked.random_mask(ask.text, ask.model, seed=len(ask.text))
        return await getattr(asked, kind)(ask)

    alone = [asyncio.run(answer(*each)) for each in asks]
    chosen = [draw.randrange(len(asks)) for _ in range(gate.size(320, 6_400))]

    def work(part):
        async def all_of_them():
            return await asyncio.gather(*(answer(*asks[each]) for each in part))

        return asyncio.run(all_of_them())

    parts = [chosen[start::32] for start in range(32)]
    with ThreadPoolExecutor(32) as threads:
        for part, found in zip(parts, threads.map(work, parts), strict=True):
            for each, mine in zip(part, found, strict=True):
                same(mine, alone[each])
    asked.close()


def same(mine, theirs):
    if hasattr(mine, "predictions"):
        assert (mine.text, len(mine.predictions)) == (theirs.text, len(theirs.predictions))
        for one, other in zip(mine.predictions, theirs.predictions, strict=True):
            assert one.position == other.position
            found = [c.probability for c in one.candidates]
            assert found == pytest.approx([c.probability for c in other.candidates], rel=1e-4)
    elif hasattr(mine, "probabilities"):
        assert np.allclose(mine.probabilities, theirs.probabilities, atol=1e-5)
    else:
        assert mine == theirs


def test_equal_questions_run_the_model_once(session, monkeypatch):
    calls = []
    run = session._batcher.run
    monkeypatch.setattr(session._batcher, "run", lambda *args: calls.append(args) or run(*args))
    ask = Ask(text=TEXT, model="tiny", marks=(Mark(position=3),))
    first, second = together(session.fill(ask), session.fill(ask))
    (third,) = together(session.fill(ask))
    assert first is second is third
    assert sum(len(items) for _, items in calls) == 1


def test_a_refused_question_is_not_remembered_and_harms_nobody(session):
    good = Ask(text=TEXT, model="tiny", marks=(Mark(position=1),))
    bad = Ask(text=TEXT, model="tiny", marks=(Mark(position=99),))
    first, second = together(session.fill(bad), session.fill(good))
    assert isinstance(first, InputError)
    assert "99" in str(first)
    assert len(second.predictions) == 1
    assert len(session._fills) == 1
    assert session._running == {}


@pytest.mark.parametrize("name", ["nope", "../tiny", "/etc", "google-bert/bert-base-uncased", ""])
def test_only_listed_models_are_loaded(session, models, name):
    with pytest.raises(InputError, match="tiny"):
        session.model(name)
    with pytest.raises(InputError):
        session.model(str(models / "tiny"))


def test_a_model_whose_files_go_while_it_is_loaded_is_refused(session, monkeypatch):
    def load(place):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", f"{place}/vocab.txt")

    monkeypatch.setattr(cm, "load", load)
    with pytest.raises(InputError, match=r"files of tiny cannot be read: No such file"):
        session.model("tiny")


def test_a_model_is_loaded_once_by_many_threads(session, monkeypatch):
    loads, load = [], cm.load
    monkeypatch.setattr(cm, "load", lambda place: loads.append(place) or load(place))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(session.model("tiny"))) for _ in "12345678"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [place.name for place in loads] == ["tiny"]
    assert len({id(model) for model in found}) == 1


def test_tokens_keep_the_visitors_spelling(session):
    (sentence,) = together(session.tokenize("PARIS is  café [MASK] 😀", "tiny"))
    words = [token for token in sentence.tokens if not token.special]
    assert "".join(token.text for token in words) == "PARISiscafé[MASK]😀"
    assert [token.masked for token in words].count(True) == 1
    assert words[-1].unknown
    for token in words:
        assert sentence.text[token.start : token.end] == token.text


def test_tokens_keep_accents_that_are_characters_of_their_own(session):
    text = "Paris\u0302 bees\u0301."
    (encoding,) = session.model("tiny").encode([text])
    shown = sentence_tokens(encoding, session.model("tiny").tokenizer)
    assert "".join(token.text for token in shown if not token.special) == text.replace(" ", "")


@pytest.mark.parametrize("name", ["roberta-mini", "albert-mini", "xlnet-mini", "modernbert-mini"])
def test_a_token_lies_where_its_text_stands_whatever_its_piece_begins_with(name):
    """Byte-level and unigram pieces begin with a blank; a word that is put there keeps it."""
    tokenizer = Tokenizer.from_folder(MODELS / name)
    mask = tokenizer.piece(tokenizer.mask_id)
    encoding = tokenizer.encode(f"The capital of France  is {mask} here .")
    shown = sentence_tokens(encoding, tokenizer)
    for token in shown:
        if not token.special and not token.masked and token.text != "\N{OPEN BOX}":
            assert encoding.text[token.start : token.end] == token.text
    (france,) = [token for token in shown if token.text == "France"]
    assert (france.start, france.end) == (15, 21)
    (gap,) = [token for token in shown if token.masked]
    assert encoding.text[gap.start : gap.end] == mask


def test_maps_that_would_fill_the_memory_are_refused():
    """ModernBERT at 8,192 tokens: 66 GB; BERT large at 512: 0.4."""
    large, long = (
        SimpleNamespace(config=cm.size(name)) for name in ("bert-large-uncased", "modernbert-base")
    )
    passes.check_maps(large, 512)
    with pytest.raises(InputError, match=r"8,192 tokens would take 66\.0 GB of memory, and 1 GB"):
        passes.check_maps(long, 8_192)
    passes.check_maps(long, 4_096, 1)


def test_a_draw_can_be_replayed(session):
    draws = together(*(session.random_mask(TEXT * 5, "tiny", seed=seed) for seed in (1, 1, 2)))
    assert draws[0] == draws[1] != draws[2]
    length = len(draws[0].sentence.tokens)
    assert len(draws[0].marks) == round(0.15 * length)


def test_a_draw_hides_whole_words_and_never_the_special_pieces(session):
    for seed in range(20):
        (drawn,) = together(
            session.random_mask(TEXT * 5, "tiny", seed=seed, rate=0.4, kind="whole_word")
        )
        tokens = drawn.sentence.tokens
        marked = {mark.position for mark in drawn.marks}
        assert not any(tokens[position].special for position in marked)
        words = {tokens[position].word for position in marked}
        assert marked == {t.position for t in tokens if t.word in words}


def test_a_draw_of_spans_is_the_cores_own(session):
    text = TEXT * 8
    (drawn,) = together(session.random_mask(text, "tiny", seed=5, rate=0.3, kind="span"))
    tokens, tokenizer = drawn.sentence.tokens, session.model("tiny").tokenizer
    expected = span_masking.spans(
        torch.tensor([token.id for token in tokens]),
        torch.tensor([not token.special for token in tokens]),
        torch.tensor([-1 if token.word is None else token.word for token in tokens]),
        generator=torch.Generator().manual_seed(5),
        mask_id=tokenizer.mask_id,
        vocabulary=tokenizer.vocabulary,
        rate=0.3,
    )
    cases = ["untouched", "mask", "random", "kept"]
    found = {mark.position: mark.case for mark in drawn.marks}
    assert found == {n: cases[case] for n, case in enumerate(expected.cases.tolist()) if case}
    assert len(drawn.lengths) == len(expected.spans)
    words = {tokens[position].word for position in found}
    assert sum(drawn.lengths) >= len(words)
    for (_, first, after), length in zip(expected.spans.tolist(), drawn.lengths, strict=True):
        assert length == len({tokens[n].word for n in range(first, after)})
        assert len({found[n] for n in range(first, after)}) == 1


def test_drawn_lengths_follow_their_law(session):
    """n-grams of a long text at a low share seldom touch, so their mean is near that of the law."""
    lengths = []
    for seed in range(30):
        (drawn,) = together(
            session.random_mask(TEXT * 17, "tiny", seed=seed, rate=0.08, kind="ngram")
        )
        lengths += drawn.lengths
    law = LAWS["ngram"]
    assert law == pytest.approx((6 / 11, 3 / 11, 2 / 11))
    mean = sum(n * share for n, share in enumerate(law, start=1))
    assert sum(lengths) / len(lengths) == pytest.approx(mean, rel=0.15)
    assert sum(LAWS["span"]) == pytest.approx(1)
    (single,) = together(session.random_mask(TEXT, "tiny", seed=1))
    assert single.lengths == ()


@pytest.mark.parametrize("kind", ["spans", None, "", 3, ["span"]])
def test_only_known_maskings_are_drawn(session, kind):
    (problem,) = together(session.random_mask(TEXT, "tiny", seed=1, kind=kind))
    assert isinstance(problem, InputError)
    assert "uniform, whole_word, ngram, span" in str(problem)


def test_the_shown_pieces_of_a_draw_are_what_the_model_sees(session):
    (drawn,) = together(session.random_mask(TEXT * 12, "tiny", seed=3, rate=0.9))
    tokenizer = session.model("tiny").tokenizer
    assert {mark.case for mark in drawn.marks} == {"mask", "random", "kept"}
    for mark, shown in zip(drawn.marks, drawn.shown, strict=True):
        if mark.case == "mask":
            assert shown == "[MASK]"
        if mark.case == "random":
            assert shown == tokenizer.display(mark.piece)


def test_attention_is_the_traces_own(session):
    ask = Ask(text=TEXT, model="tiny", marks=(Mark(position=6),))
    (answer,) = together(session.attention(ask))
    model = cm.load("tiny")
    batch = model.batch([TEXT])
    batch.input_ids[0, 6] = model.tokenizer.mask_id
    trace = cm.Trace(sites=["probabilities"])
    with torch.inference_mode():
        model.encoder(batch, trace)
    expected = trace.stack("probabilities")[:, 0].numpy()
    assert answer.probabilities.dtype == np.float32
    np.testing.assert_allclose(answer.probabilities, expected, rtol=1e-5, atol=1e-7)
    assert answer.seen[6] == "[MASK]"
    (encoding,) = model.encode([TEXT])
    written = [TEXT[start:end] for start, end in encoding.offsets]
    assert "".join(written) == TEXT.replace(" ", "")
    assert [token.text for token in answer.tokens if not token.special] == written[1:-1]


def test_attention_refuses_marks_that_do_not_fit(session):
    for mark in (Mark(position=0), Mark(position=99), Mark(position=1, case="random", piece=10**6)):
        (answer,) = together(session.attention(Ask(text=TEXT, model="tiny", marks=(mark,))))
        assert isinstance(answer, InputError)


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"text": None},
        {"text": TEXT},
        {"text": TEXT, "model": "nope"},
        {"text": TEXT, "model": "tiny", "marks": "x"},
        {"text": TEXT, "model": "tiny", "marks": [{"position": 999}]},
        {"text": TEXT, "model": "tiny", "marks": [{"position": 0}]},
        {"text": TEXT, "model": "tiny", "marks": [{"position": 1}, {"position": 1}]},
        {
            "text": TEXT,
            "model": "tiny",
            "marks": [{"position": 1, "case": "random", "piece": 9**9}],
        },
        {"text": TEXT, "model": "tiny", "top_k": 10**6},
        {"text": TEXT, "model": "tiny", "words": [{}]},
        {"text": "x" * 100_000, "model": "tiny"},
    ],
)
def test_the_page_gets_a_message_for_every_bad_question(session, question):
    with pytest.raises(InputError, match=r"^.{10,300}$"):
        asyncio.run(mask.predict(session, question))


def test_a_lone_surrogate_does_not_stop_the_model(session):
    question = {"rev": 1, "text": "Paris \ud800 is", "model": "tiny", "words": ["\ud800"]}
    (answer,) = together(mask.predict(session, question))
    assert answer["predictions"] == []


def test_warming_loads_a_model_and_an_unknown_one_is_no_error(session, monkeypatch):
    loads, asked, load = [], [], cm.load
    monkeypatch.setattr(cm, "load", lambda place: loads.append(str(place)) or load(place))
    monkeypatch.setattr(
        "app.serving.session.fill",
        lambda model, asks: asked.append(model) or passes.fill(model, asks),
    )
    session.warm("nope")
    assert loads == asked == []
    session.warm("tiny")
    assert len(loads) == len(asked) == 1
    assert asked == [session.model("tiny")]
    assert len(loads) == 1


class Shelf:
    """Models of runs: one run whose newest model changes."""

    def __init__(self, folder):
        self.folder = folder
        self.newest = "tiny"

    def models(self):
        return [("run/a", "a, step 1")]

    def model_path(self, name):
        if name != "run/a":
            raise InputError("no run")
        return self.folder / self.newest


def test_the_newest_model_of_a_run_answers_and_not_what_an_older_one_said(models):
    shelf = Shelf(models)
    session = Session(library=shelf)
    ask = Ask(text=TEXT, model="run/a", marks=(Mark(position=3),))
    try:
        for name in ("tiny", "other", "tiny"):
            shelf.newest = name
            expected = fill(cm.load(models / name), TEXT, masks=[3], top_k=5)
            found = asyncio.run(session.fill(ask))
            assert [c.id for c in found.predictions[0].candidates] == [
                c.id for c in expected.predictions[0].candidates
            ]
    finally:
        session.close()


def test_only_runs_of_the_library_are_opened_and_the_picker_lists_them(models):
    session = Session(library=Shelf(models))
    try:
        assert ("a, step 1 · gaps, next sentence", "run/a") in session.choices()
        for name in ("run/b", "run/../a", f"run/{models}", "run/"):
            with pytest.raises(InputError):
                session.model(name)
    finally:
        session.close()


@pytest.mark.parametrize("room", [1.5, 2.5])
def test_models_of_runs_do_not_fill_the_memory(models, monkeypatch, room):
    weight = sum(path.stat().st_size for path in (models / "tiny").glob("*.safetensors"))
    monkeypatch.setattr("app.serving.session.RUN_BYTES", room * weight)
    shelf = Shelf(models)
    session = Session(library=shelf)
    try:
        first = session.model("run/a")
        assert session.model("run/a") is first
        shelf.newest = "other"
        session.model("run/a")
        shelf.newest = "tiny"
        assert (session.model("run/a") is first) is (room > 2)
    finally:
        session.close()


def test_models_of_deleted_runs_are_forgotten(session, models, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "folder", lambda name: tmp_path / name)
    for name in ("first", "second", "third"):
        shutil.copytree(models / "tiny", tmp_path / name)
        assert session.inspected(name).heads == ("masked_token", "next_sentence")
        if name == "first":
            shutil.rmtree(tmp_path / name)
    assert [path.name for path in session._heads] == ["second", "third"]
