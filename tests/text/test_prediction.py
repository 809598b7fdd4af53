import json
import math
from dataclasses import replace

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.prediction import (
    FillRequest,
    FillResult,
    fill,
    fill_many,
    score,
    score_filling,
)
from tests.core.tiny_models import tiny

TEXT = "The river was very [MASK] in the morning."
"""[CLS] 0, the 1, river 2, was 3, very 4, [MASK] 5, in 6, the 7, morning 8, . 9, [SEP] 10."""


def direct(model: cm.Model, ids: list[int]) -> torch.Tensor:
    """Log-probabilities [L, V] of one unpadded input."""
    with torch.inference_mode():
        out = model.encoder(cm.Batch(input_ids=torch.tensor([ids])))
        return model.heads["masked_token"](out.hidden)[0].log_softmax(-1)


def test_a_gap_is_filled_with_the_best_pieces(model: cm.Model) -> None:
    result = fill(model, TEXT, top_k=7)
    (found,) = result.predictions
    logs = direct(model, model.encode([TEXT])[0].ids)[5]
    best = logs.topk(7)
    assert [c.id for c in found.candidates] == best.indices.tolist()
    assert [c.probability for c in found.candidates] == pytest.approx(
        best.values.exp().tolist(), rel=1e-4
    )
    assert [c.rank for c in found.candidates] == [1, 2, 3, 4, 5, 6, 7]
    assert found.entropy == pytest.approx(float(-(logs.exp() * logs).sum()), rel=1e-4)
    assert (found.position, found.case, found.original) == (5, "mask", None)
    assert [token.masked for token in result.tokens] == [p == 5 for p in range(11)]
    assert result.truncated is False


def test_equally_probable_pieces_share_a_rank(model: cm.Model) -> None:
    even = model.clone()
    with torch.no_grad():
        for name in ("norm.weight", "norm.bias", "decoder.bias"):
            even.heads["masked_token"].get_parameter(name).zero_()
        even.heads["masked_token"].get_parameter("decoder.bias")[9] = 1.0
    (found,) = fill(even, TEXT, top_k=4, watch=["the", "cold"]).predictions
    assert [c.rank for c in found.candidates] == [1, 2, 2, 2]
    assert [w.rank for w in found.watched] == [2, 2]
    assert found.entropy < math.log(model.tokenizer.vocabulary)


def test_pieces_that_continue_a_word_are_told(model: cm.Model) -> None:
    (found,) = fill(model, TEXT, top_k=100).predictions
    told = {c.piece.startswith("##"): c.continues for c in found.candidates}
    assert told == {True: True, False: False}
    suffix = model.tokenizer.id("##s")
    assert suffix is not None
    choices = score_filling(model, TEXT, {2: model.encode([TEXT])[0].ids[2], 5: suffix}).choices
    assert [choice.continues for choice in choices] == [False, True]


def test_all_candidates_add_up(model: cm.Model) -> None:
    (found,) = fill(model, TEXT, top_k=100).predictions
    assert len(found.candidates) == 100
    shares = [c.probability for c in found.candidates]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1 + 1e-5
    assert 0 <= found.entropy <= math.log(model.tokenizer.vocabulary) + 1e-4


def test_masked_replaced_and_kept_positions(model: cm.Model) -> None:
    other = model.tokenizer.pieces_of("table")[0]
    result = fill(model, TEXT, masks=[2], replaced={8: other}, kept=[3])
    assert [(p.position, p.case) for p in result.predictions] == (
        [(2, "mask"), (3, "kept"), (5, "mask"), (8, "random")]
    )
    ids = model.encode([TEXT])[0].ids
    original = ids[2], ids[3], ids[8]
    ids[2], ids[8] = model.tokenizer.mask_id, other
    logs = direct(model, ids)
    for prediction, index in zip([result.predictions[i] for i in (0, 1, 3)], original, strict=True):
        assert prediction.original is not None
        assert prediction.original.id == index
        row = logs[prediction.position]
        assert prediction.original.probability == pytest.approx(float(row[index].exp()), rel=1e-4)
        assert prediction.original.rank == int((row > row[index]).sum()) + 1
    # The tokens tell of the text, not of what the model saw.
    assert [token.display for token in result.tokens][8] == "morning"
    assert [token.masked for token in result.tokens].count(True) == 2


def test_watched_words(model: cm.Model) -> None:
    words = [" cold ", "Cold", "chrysanthemums", "🙂", "##s", "\u200b"]
    (found,) = fill(model, TEXT, watch=words).predictions
    cold, upper, long, emoji, suffix, nothing = found.watched
    logs = direct(model, model.encode([TEXT])[0].ids)[5]
    index = model.tokenizer.pieces_of("cold")[0]
    assert (cold.word, cold.id, cold.note, cold.pieces) == ("cold", index, None, ("cold",))
    assert cold.probability == pytest.approx(float(logs[index].exp()), rel=1e-4)
    assert cold.rank == int((logs > logs[index]).sum()) + 1
    assert upper.id == cold.id
    assert upper.word == "Cold"
    assert (suffix.piece, suffix.display) == ("##s", "s")
    for item in (long, emoji, nothing):
        assert (item.id, item.probability, item.rank) == (None, None, None)
    assert long.note is not None
    assert f"{len(long.pieces)} pieces" in long.note
    assert "".join(long.pieces) == "chrysanthemums"
    assert emoji.note is not None
    assert "not in the model's vocabulary" in emoji.note
    assert nothing.note is not None


def test_a_piece_is_watched_by_its_id_where_its_letters_are_another_one() -> None:
    """A byte-level "." alone is read as a word, with a blank before it."""
    words = cm.Tokenizer.train(["It ends . It ends. a . b."] * 9, vocabulary=300, kind="byte_bpe")
    dot = words.id(".")
    assert dot is not None
    assert words.pieces_of(".") != [dot]
    config = tiny("roberta-base").with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    model = cm.Model.new(config, words, generator=torch.Generator().manual_seed(1)).eval()
    (found,) = fill(model, "It ends.", masks=[3], watch=[dot, "."], top_k=1).predictions
    by_id, as_word = found.watched
    assert (by_id.id, by_id.word) == (dot, ".")
    assert by_id.rank == found.original.rank
    assert as_word.id != dot


def test_texts_without_a_gap_have_tokens_only(model: cm.Model) -> None:
    result = fill(model, "The river.")
    assert result.predictions == []
    assert [token.display for token in result.tokens] == ["[CLS]", "the", "river", ".", "[SEP]"]
    assert [(t.start, t.end) for t in result.tokens[1:-1]] == [(0, 3), (4, 9), (9, 10)]


def test_pairs(model: cm.Model) -> None:
    result = fill(model, "The river.", pair="It was [MASK].")
    assert [p.position for p in result.predictions] == [7]
    encoding = model.encode([("The river.", "It was [MASK].")])[0]
    with torch.inference_mode():
        out = model.encoder(model.collate([encoding]))
        best = model.heads["masked_token"](out.hidden[0, 7]).argmax()
    assert result.predictions[0].candidates[0].id == int(best)


def test_many_requests_equal_single_ones(model: cm.Model) -> None:
    requests = [
        FillRequest(TEXT, top_k=3, watch=("cold",)),
        FillRequest(" "),
        FillRequest("Short [MASK]", top_k=9),
        FillRequest("A much longer sentence about rivers and mountains " * 9, masks=(2, 4)),
        FillRequest("x", masks=(5,)),
        FillRequest("No gap here."),
        FillRequest(TEXT, kept=(1,), watch=("a", "b", "the")),
    ]
    together = fill_many(model, requests)
    assert [isinstance(r, InputError) for r in together] == [n in {1, 4} for n in range(7)]
    for request, found in zip(requests, together, strict=True):
        (alone,) = fill_many(model, [request])
        if isinstance(found, InputError):
            assert str(found) == str(alone)
            continue
        assert isinstance(alone, FillResult)
        assert found.tokens == alone.tokens
        for ours, theirs in zip(found.predictions, alone.predictions, strict=True):
            assert [c.id for c in ours.candidates] == [c.id for c in theirs.candidates]
            assert ours.entropy == pytest.approx(theirs.entropy, rel=1e-4)
            for one, two in zip(ours.watched, theirs.watched, strict=True):
                assert (one.id, one.rank) == (two.id, two.rank)


def test_every_token_masked(model: cm.Model) -> None:
    result = fill(model, "The river was cold.", masks=[1, 2, 3, 4, 5])
    assert [p.position for p in result.predictions] == [1, 2, 3, 4, 5]
    assert all(p.original is not None for p in result.predictions)


def test_long_texts_are_truncated_not_refused(model: cm.Model) -> None:
    result = fill(model, "river " * 3000, masks=[1])
    assert result.truncated
    assert len(result.tokens) == model.longest


@pytest.mark.parametrize("text", ["", "  \n", "x" * 100_000, "\ud83d", "\u200b"])
def test_unusable_texts(model: cm.Model, text: str) -> None:
    with pytest.raises(InputError):
        fill(model, text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"masks": [11]}, r"whole number from 0 to 10"),
        ({"masks": [-1]}, r"whole number"),
        ({"masks": [2.0]}, r"A position is 2\.0"),
        ({"masks": ["2"]}, r"A position is '2'"),
        ({"masks": [True]}, r"A position is True"),
        ({"masks": [[2]]}, r"A position is \[2\]"),
        ({"masks": [0]}, r"\[CLS\], which stands for no word"),
        ({"kept": [10]}, r"\[SEP\]"),
        ({"masks": [2, 2]}, "twice"),
        ({"masks": [2], "kept": [2]}, "twice"),
        ({"masks": list(range(600))}, "600 positions are too many; at most 512"),
        ({"replaced": {2: 10**6}}, "The piece id is 1000000"),
        ({"replaced": {2: "a"}}, "The piece id is 'a'"),
        ({"top_k": 0}, "top_k is 0; it must be a whole number from 1 to 100"),
        ({"top_k": 101}, "top_k is 101"),
        ({"top_k": 2.5}, "top_k is 2.5"),
        ({"watch": "word"}, "a list of words"),
        ({"watch": ["x" * 65]}, "65 characters; a word may have 64"),
        ({"watch": [" "]}, "watch holds an empty word"),
        ({"watch": [10**6]}, "The piece id is 1000000"),
        ({"watch": [7.0]}, "must be a string, not float"),
        ({"watch": ["a"] * 33}, "at most 32"),
        ({"pair": ""}, "empty"),
    ],
)
def test_unusable_questions(model: cm.Model, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fill(model, TEXT, **options)  # type: ignore[arg-type]


def test_models_that_cannot_answer_are_refused(model: cm.Model) -> None:
    bare = cm.Model.new(model.config, model.tokenizer, heads=["next_sentence"]).eval()
    with pytest.raises(InputError, match="no head that predicts pieces"):
        fill(bare, TEXT)
    training = cm.Model.new(model.config, model.tokenizer)
    with pytest.raises(InputError, match="training mode"):
        score(training, [TEXT])


def test_results_are_plain_json(model: cm.Model) -> None:
    result = fill(model, "<script>alert(1)</script> שלום [MASK] 👩‍👩‍👧", masks=[1], watch=["the"])
    again = json.loads(json.dumps(result.to_json(), ensure_ascii=False))
    assert again == result.to_json()
    assert again["text"] == result.text
    assert again["predictions"][0]["candidates"][0].keys() == (
        {"id", "piece", "display", "continues", "probability", "rank"}
    )
    assert json.loads(json.dumps(score(model, ["The river."])[0].to_json()))["tokens"] == 3


def test_asking_changes_neither_model_nor_generators(model: cm.Model) -> None:
    before = torch.get_rng_state()
    first, second = fill(model, TEXT), fill(model, TEXT)
    assert first == second
    assert torch.equal(before, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())


# --- scores -----------------------------------------------------------------------------------


def test_scores_are_sums_over_masked_copies(model: cm.Model) -> None:
    texts = [
        "The river was cold.",
        "Rain.",
        "We went unhurriedly to the [MASK] table, and she smiled.",
    ]
    for text, found in zip(texts, score(model, texts, batch_size=5), strict=True):
        encoding = model.encode([text])[0]
        total, counted = 0.0, 0
        for position, special in enumerate(encoding.special):
            if special or encoding.ids[position] == model.tokenizer.mask_id:
                continue
            ids = list(encoding.ids)
            ids[position] = model.tokenizer.mask_id
            value = float(direct(model, ids)[position, encoding.ids[position]])
            assert found.per_token[counted].score == pytest.approx(value, abs=1e-4)
            assert found.per_token[counted].position == position
            total += value
            counted += 1
        assert found.total == pytest.approx(total, abs=1e-3)
        assert (found.text, found.tokens) == (text, counted)
        assert found.words == len(
            {
                w
                for w, i in zip(encoding.words, encoding.ids, strict=True)
                if w is not None and i != model.tokenizer.mask_id
            }
        )


def test_scores_do_not_depend_on_the_company(model: cm.Model, sentences: list[str]) -> None:
    texts = [*sentences[:4], sentences[1]]
    together = score(model, texts, batch_size=64)
    assert [s.text for s in together] == texts
    for text, found in zip(texts, together, strict=True):
        (alone,) = score(model, [text], batch_size=1)
        assert found.total == pytest.approx(alone.total, abs=2e-3)
    assert together[1] == together[4]


def test_long_and_unusable_lines(model: cm.Model) -> None:
    assert score(model, []) == []
    assert score(model, "Fine.") == score(model, ["Fine."])  # no row for each of its letters
    with pytest.raises(InputError, match="Text 2: The text is empty"):
        score(model, ["Fine.", " "])
    with pytest.raises(InputError, match="batch_size"):
        score(model, ["Fine."], batch_size=0)
    short = replace(model.config.embeddings, positions=12)
    config = replace(model.config, embeddings=short)
    small = cm.Model.new(config, model.tokenizer, generator=torch.Generator().manual_seed(0)).eval()
    (found,) = score(small, ["river " * 40])
    assert found.truncated
    assert found.tokens == 10


def test_only_a_gap_scores_zero(model: cm.Model) -> None:
    (found,) = score(model, ["[MASK]"])
    assert (found.total, found.tokens) == (0.0, 0)
