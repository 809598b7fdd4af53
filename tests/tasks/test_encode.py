"""Rows to batches and back, for every kind of tokenizer and template."""

import json
from dataclasses import replace

import pytest
import tokenizers
import torch
from torch import Tensor

import core_models as cm
from core_models.errors import InputError
from core_models.tasks import sets
from core_models.tasks.encode import IGNORED, Coder, content
from core_models.tasks.rows import Answer, Row
from core_models.tasks.words import join
from tests.tasks.conftest import first_rows

CONTEXT = (
    "Glass is made by melting sand. The float process was developed by Alastair Pilkington in "
    "1952, and \u5317\u4eac has a \u73bb\u7483 factory. " + "Sheets of glass cool slowly. " * 20
)


def question(answer: str | None, context: str = CONTEXT) -> Row:
    answers = () if answer is None else (Answer(answer, context.index(answer)),)
    return Row(text=context, pair="Who developed the process?", answers=answers)


def columns(batch: cm.Batch) -> Tensor:
    assert batch.input_ids is not None
    return batch.input_ids


def test_labels_and_pairs(model: cm.Model) -> None:
    task = first_rows("nli")
    coder = Coder.of(model, task)
    batch = coder.batch(coder.features(task.train))
    assert batch.class_labels is not None
    assert batch.class_labels.tolist() == [
        ["contradiction", "entailment", "neutral"].index(str(row.label)) for row in task.train
    ]
    separators = (columns(batch) == model.tokenizer.sep_id).sum(1)
    assert set(separators.tolist()) == {model.tokenizer.template.extra(pair=True) - 1}


def test_the_longer_text_of_a_pair_is_cut(bert: cm.Model) -> None:
    row = Row(text="rain " * 50, pair="sun and wind", label="a")
    coder = Coder(model=bert, kind="pair", labels=("a", "b"), max_length=16)
    (feature,) = coder.features([row])
    assert len(feature.encoding) == 16
    short = len(bert.tokenizer.encode("sun and wind").ids) - 2
    assert feature.encoding.segment_ids.count(1) == short + 1


def test_a_class_piece_that_ends_texts_too_comes_first(bert: cm.Model) -> None:
    parsed = json.loads(bert.tokenizer._definition) | {"post_processor": None}
    names = {"cls_token": "[SEP]", "sep_token": "[SEP]"}
    words = cm.Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(parsed)), names)
    coder = Coder(model=cm.Model.new(bert.config, words), kind="answer", max_length=40)
    nowhere = coder.features([question(None)])
    assert coder.cls_column == 0
    assert {feature.start for feature in nowhere} == {0}
    assert columns(coder.batch(nowhere))[:, 0].tolist() == [words.cls_id] * len(nowhere)


@pytest.mark.parametrize("kind", ["pair", "tag", "answer"])
def test_features_are_counted_without_making_them(model: cm.Model, kind: str) -> None:
    words = tuple(CONTEXT.split())
    long = {
        "pair": Row(text=CONTEXT, pair="rain", label="a"),
        "tag": Row(tokens=words, tags=("O",) * len(words)),
        "answer": question("Alastair Pilkington"),
    }[kind]
    coder = Coder(model=model, kind=kind, labels=("O", "a"), max_length=48, stride=7)
    rows = [long] * 3
    count = coder.count(rows)
    assert count == len(coder.features(rows))
    assert (count == 3) if kind == "pair" else (count > 9)
    # Where there are more than anybody wants the rest is not looked at.
    looked_at = {"pair": 2, "tag": 1, "answer": 1}[kind]
    assert coder.count(rows, most=1) == count * looked_at // 3
    if kind == "answer":
        with pytest.raises(InputError, match="Row 9"):
            coder.count([replace(long, number=9, text="a " * 11_000)])


def test_scores_are_scaled_to_one(model: cm.Model) -> None:
    rows = [Row(text="a", pair="b", score=s) for s in (1.0, 2.0, 5.0)]
    coder = Coder(model=model, kind="regress", scale=(1.0, 5.0))
    batch = coder.batch(coder.features(rows))
    assert batch.score_labels is not None
    assert batch.score_labels.tolist() == [0.0, 0.25, 1.0]
    assert batch.second is None


def test_texts_encoded_apart(model: cm.Model) -> None:
    rows = [Row(text="Rain falls.", pair="The sun is very bright today.", score=1.0)] * 2
    batch = (coder := Coder(model=model, kind="regress", apart=True)).batch(coder.features(rows))
    assert batch.second is not None
    first, second = model.batch(["Rain falls."]), model.batch(["The sun is very bright today."])
    assert columns(batch)[0].tolist() == columns(first)[0].tolist()
    assert columns(batch.second)[1].tolist() == columns(second)[0].tolist()


@pytest.mark.parametrize("name", ["ner", "ner-zh"])
def test_each_word_has_one_labelled_piece(model: cm.Model, name: str) -> None:
    task = first_rows(name, 20)
    coder = Coder.of(model, task)
    features = coder.features(task.train)
    batch = coder.batch(features)
    assert batch.tag_labels is not None
    for feature, labels, ids in zip(features, batch.tag_labels, columns(batch), strict=True):
        row = task.train[feature.row]
        assert [w for w in feature.words if w >= 0] == list(range(len(row.tokens)))
        labelled = labels != IGNORED
        assert [task.labels[i] for i in labels[labelled].tolist()] == list(row.tags)
        # The labelled piece holds the beginning of its word.
        shift = coder.shift(feature, len(labels))
        for column in labelled.nonzero().flatten().tolist():
            place = column - shift
            assert ids[column] == feature.encoding.ids[place]
            start, end = content(feature.encoding, place, feature.encoding.text)
            word = row.tokens[feature.words[place]]
            assert word.startswith(feature.encoding.text[start:end][: len(word)])


def test_padding_goes_left_where_the_family_has_it_left(model: cm.Model) -> None:
    task = first_rows("ner", 6)
    coder = Coder.of(model, task)
    batch = coder.batch(coder.features(task.train))
    assert batch.attention_mask is not None
    assert batch.tag_labels is not None
    left = model.tokenizer.template.pad_left
    assert left == (model.config.family == "xlnet")
    shortest = batch.attention_mask.sum(1).argmin()
    assert not batch.attention_mask[shortest, 0 if left else -1]
    assert (batch.tag_labels[~batch.attention_mask] == IGNORED).all()
    cls = columns(batch)[:, coder.cls_column]
    assert left or (cls == model.tokenizer.cls_id).all()


def test_many_words_to_tag_are_read_in_windows(model: cm.Model) -> None:
    tokens = ("Rain", "fell", "on", "Oslo", ",", "wonderfully", "incomprehensibly", ".") * 6
    row = Row(tokens=tokens, tags=("O",) * len(tokens))
    coder = Coder(model=model, kind="tag", labels=("O", "B-LOC"), max_length=20)
    features = coder.features([row])
    assert len(features) > 3
    assert all(len(feature.encoding) <= 20 for feature in features)
    assert [w for f in features for w in f.words if w >= 0] == list(range(len(tokens)))


def test_a_document_of_words_is_longer_than_a_text_may_be(bert: cm.Model) -> None:
    tokens = ("Oslo", "wonderfully") * 2_000
    coder = Coder(model=bert, kind="tag", labels=("O",), max_length=64)
    features = coder.features([Row(tokens=tokens, tags=("O",) * len(tokens))])
    assert [w for f in features for w in f.words if w >= 0] == list(range(len(tokens)))
    # The end of a document is read as if it stood alone.
    (last,) = coder.features([Row(tokens=tokens[-4:], tags=("O",) * 4)])
    assert features[-1].encoding.ids[-len(last.encoding) + 1 :] == last.encoding.ids[1:]


def test_a_word_longer_than_the_input_does_not_hang(model: cm.Model) -> None:
    tokens = ("Rain", "abcdefghij" * 9, "fell")
    coder = Coder(model=model, kind="tag", labels=("O",), max_length=8)
    features = coder.features([Row(tokens=tokens, tags=("O",) * 3)])
    assert [w for f in features for w in f.words if w >= 0] == [0, 1, 2]


def test_dropped_words_have_no_piece(bert: cm.Model) -> None:
    coder = Coder(model=bert, kind="tag", labels=("O",))
    (feature,) = coder.features([Row(tokens=("Rain", "\u200d", "fell"), tags=("O",) * 3)])
    assert [w for w in feature.words if w >= 0] == [0, 2]


@pytest.mark.parametrize("answer", ["Alastair Pilkington", "1952", "\u5317\u4eac", "Glass"])
def test_answers_come_back_from_their_pieces(model: cm.Model, answer: str) -> None:
    row = question(answer)
    coder = Coder(model=model, kind="answer", max_length=60, stride=20)
    features = coder.features([row])
    assert len(features) > 2
    found = 0
    for feature in features:
        cls = coder.cls_place(feature.encoding)
        assert feature.encoding.ids[cls] == model.tokenizer.cls_id
        assert len(feature.encoding) <= 60
        if feature.start != cls:
            start, _ = content(feature.encoding, feature.start, row.text)
            _, end = content(feature.encoding, feature.end, row.text)
            assert answer in row.text[start:end]
            assert end - start <= len(answer) + 4  # whole pieces may reach a little further
            assert feature.context[0] <= feature.start <= feature.end < feature.context[1]
            found += 1
    assert found >= 1
    batch = coder.batch(features)
    assert batch.answer_starts is not None
    for feature, ids, place in zip(features, columns(batch), batch.answer_starts, strict=True):
        assert ids[place] == feature.encoding.ids[feature.start]


def test_every_piece_of_the_context_is_in_some_window(model: cm.Model) -> None:
    row = question(None)
    coder = Coder(model=model, kind="answer", max_length=60, stride=20)
    seen: set[int] = set()
    for feature in coder.features([row]):
        assert feature.start == feature.end == coder.cls_place(feature.encoding)
        first, last = feature.context
        for place in range(first, last):
            seen.update(range(*content(feature.encoding, place, row.text)))
        text = model.tokenizer.decode(feature.encoding.ids)
        assert "process?" in text.replace(" ", "")  # the question is in each window
    assert seen >= {i for i, c in enumerate(row.text) if not c.isspace()}


def test_an_answer_cut_by_a_window_counts_as_none_there(bert: cm.Model) -> None:
    row = question("Alastair Pilkington")
    coder = Coder(model=bert, kind="answer", max_length=30, stride=1)
    whole = [f for f in coder.features([row]) if f.start != coder.cls_place(f.encoding)]
    for feature in whole:
        start, _ = content(feature.encoding, feature.start, row.text)
        _, end = content(feature.encoding, feature.end, row.text)
        assert row.text[start:end] == "Alastair Pilkington"
    assert 0 < len(whole) < 30


def test_rows_that_cannot_be_encoded_are_named(bert: cm.Model) -> None:
    coder = Coder(model=bert, kind="classify", labels=("a", "b"))
    with pytest.raises(InputError, match="Row 7: Label 'c' is unknown; known are a, b"):
        coder.features([Row(number=7, text="x", label="c")])
    with pytest.raises(InputError, match="Row 2: The text has 30,000 characters"):
        coder.features([Row(text="x", label="a"), Row(text="x" * 30_000, label="a")])
    with pytest.raises(InputError, match="max_length is 200; this model takes 8 to 130"):
        replace(coder, max_length=200)
    narrow = Coder(model=bert, kind="answer", max_length=8)
    with pytest.raises(InputError, match="The question leaves no room"):
        narrow.features([question("1952")])


def test_rows_without_labels_get_none(model: cm.Model) -> None:
    coder = Coder(model=model, kind="classify", labels=("a", "b"))
    batch = coder.batch(coder.features([Row(text="x y z")]))
    assert batch.class_labels is not None
    assert batch.class_labels.tolist() == [IGNORED]
    coder = Coder(model=model, kind="regress")
    batch = coder.batch(coder.features([Row(text="x", pair="y")]))
    assert batch.score_labels is not None
    assert torch.isnan(batch.score_labels).all()


def test_a_set_with_literal_special_pieces_keeps_its_places(model: cm.Model) -> None:
    special = model.tokenizer.piece(model.tokenizer.sep_id)
    row = question("1952", f"It was {special} in 1952 {special} or so.")
    (feature,) = Coder(model=model, kind="answer").features([row])
    start, _ = content(feature.encoding, feature.start, row.text)
    _, end = content(feature.encoding, feature.end, row.text)
    assert row.text[start:end] == "1952"


def test_shipped_sets_fit_every_tokenizer(model: cm.Model) -> None:
    for name in sets.shipped():
        task = first_rows(name, 5)
        coder = Coder.of(model, task)
        batch = coder.batch(coder.features(task.train))
        assert batch.shape[1] <= 128


def test_windows_of_words_end_with_a_whole_word(model: cm.Model) -> None:
    tokens = ("incomprehensibilities", "extraordinarily") * 6
    coder = Coder(model=model, kind="tag", labels=("O",), max_length=24)
    features = coder.features([Row(tokens=tokens, tags=("O",) * len(tokens))])
    assert len(features) > 1
    for feature in features:
        first = [w for w in feature.words if w >= 0]
        text, places = join(tokens[first[0] :])
        last = max(i for i, s in enumerate(feature.encoding.special) if not s)
        _, end = content(feature.encoding, last, text)
        assert end >= places[len(first) - 1][1]


def test_chinese_answers_do_not_take_their_neighbour(bert: cm.Model) -> None:
    row = question("\u5317\u4eac", "\u4ed6\u5728\u5317\u4eac\u6709\u5bb6")
    (feature,) = Coder(model=bert, kind="answer").features([row])
    pieces = feature.encoding.offsets[feature.start : feature.end + 1]
    assert pieces == [(2, 3), (3, 4)]
