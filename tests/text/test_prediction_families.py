"""Every family answers through its own head: XLNet's queries, a causal twin, discriminators."""

import json
import math
from dataclasses import replace

import pytest
import tokenizers
import torch
import transformers

import core_models as cm
from core_models.config import Config
from core_models.errors import InputError
from core_models.evaluation.words import Word, evaluate_words
from core_models.prediction import FillRequest, detect, fill, fill_many, forge, judge_pair, score
from core_models.prediction.ablation import without_heads
from core_models.prediction.results import FillResult
from core_models.prediction.targets import Target, TargetFunction
from core_models.tokenizer import Tokenizer

TEXT = "The river was very cold in the morning."


def tiny(name: str, tokenizer: Tokenizer, **changes: object) -> Config:
    config = cm.size(name).with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
    attention = config.attention.with_heads(2, 16)
    return replace(
        config,
        width=32,
        embeddings=replace(config.embeddings, width=32),
        attention=attention,
        feed_forward=replace(config.feed_forward, width=64),
        schedule=(0, 1),
        **changes,  # type: ignore[arg-type]
    )


def loud(model: cm.Model) -> cm.Model:
    """Random weights say nearly the same everywhere; larger ones make mistakes visible."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)
    return model.eval()


@pytest.fixture(scope="module")
def unigram(sentences: list[str]) -> Tokenizer:
    return Tokenizer.train(sentences[:3000], vocabulary=1500, kind="unigram")


@pytest.fixture(scope="module")
def xlnet(unigram: Tokenizer) -> cm.Model:
    config = tiny("xlnet-base-cased", unigram)
    return loud(cm.Model.new(config, unigram, generator=torch.Generator().manual_seed(5)))


@pytest.fixture(scope="module")
def causal(tokenizer: Tokenizer) -> cm.Model:
    config = tiny("bert-tiny", tokenizer)
    config = replace(config, attention=replace(config.attention, direction="left"))
    return loud(
        cm.Model.new(
            config, tokenizer, heads=["causal"], generator=torch.Generator().manual_seed(6)
        )
    )


@pytest.fixture(scope="module")
def unopened(tokenizer: Tokenizer) -> cm.Model:
    """Reads from left to right, and nothing stands before its texts."""
    parsed = json.loads(tokenizer._definition)
    end = [{"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    template = {"single": [first, *end], "pair": [first, *end, second, *end]}
    parsed["post_processor"] |= template
    words = Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(parsed)))
    config = tiny("bert-tiny", words)
    config = replace(config, attention=replace(config.attention, direction="left"))
    source = torch.Generator().manual_seed(6)
    return loud(cm.Model.new(config, words, heads=["causal"], generator=source))


def test_a_causal_model_has_no_answer_for_what_stands_first(unopened: cm.Model) -> None:
    """As in its training, where every token but the first is asked for."""
    texts = [TEXT, "Rain fell in the morning, and the river was full."]
    batch = unopened.batch(TEXT)
    assert batch.input_ids is not None
    with torch.inference_mode():
        logs = unopened(batch).logits["causal"][0].log_softmax(-1)
    wanted = [float(logs[p - 1, i]) for p, i in enumerate(batch.input_ids[0].tolist()) if p][:-1]
    (found, _) = score(unopened, texts)
    assert [token.position for token in found.per_token] == [*range(1, len(wanted) + 1)]
    assert [token.score for token in found.per_token] == pytest.approx(wanted, rel=1e-4)
    said = "Position 0 is the first piece, and this model tells a piece from those before it"
    (encoding,) = unopened.encode([TEXT])
    for ask in (
        lambda: fill(unopened, TEXT, masks=[0]),
        lambda: fill(unopened, "[MASK] fell."),
        lambda: TargetFunction(unopened, encoding, Target(kind="piece", position=0)),
        lambda: without_heads(unopened, encoding, 0, [()]),
    ):
        with pytest.raises(InputError, match=said):
            ask()
    refused, answered = fill_many(unopened, [FillRequest(TEXT, [0]), FillRequest(TEXT, [1])])
    assert isinstance(refused, InputError)
    assert isinstance(answered, FillResult)
    result = evaluate_words(unopened, [Word(TEXT, 0, 3), Word(TEXT, 4, 9)])
    assert result.unknown == 0.5


@pytest.fixture(scope="module")
def judge(tokenizer: Tokenizer) -> cm.Model:
    return loud(
        cm.Model.new(
            tiny("bert-tiny", tokenizer),
            tokenizer,
            heads=["replaced_token", "sentence_order"],
            generator=torch.Generator().manual_seed(7),
        )
    )


def theirs(model: cm.Model, hidden: list[int], target: int, folder: object) -> torch.Tensor:
    """Log-probabilities [V] of transformers' XLNet: hidden pieces are invisible to all."""
    model.save(folder)  # type: ignore[arg-type]
    other = transformers.XLNetLMHeadModel.from_pretrained(folder).eval()
    encoding = model.encode([TEXT])[0]
    length = len(encoding)
    permutation = torch.zeros(1, length, length)
    permutation[:, :, hidden] = 1.0
    mapping = torch.zeros(1, 1, length)
    mapping[0, 0, target] = 1.0
    with torch.inference_mode():
        out = other(
            torch.tensor([encoding.ids]),
            token_type_ids=torch.tensor([encoding.segment_ids]),
            perm_mask=permutation,
            target_mapping=mapping,
        )
    return out.logits[0, 0].log_softmax(-1)


def test_xlnet_answers_from_its_query_stream(xlnet: cm.Model, tmp_path_factory: object) -> None:
    folder = tmp_path_factory.mktemp("xlnet")  # type: ignore[attr-defined]
    result = fill(xlnet, TEXT, masks=[2, 4], top_k=9)
    assert result.head == "permutation"
    for prediction in result.predictions:
        logs = theirs(xlnet, [2, 4], prediction.position, folder)
        best = logs.topk(9)
        assert [c.id for c in prediction.candidates] == best.indices.tolist()
        assert [c.probability for c in prediction.candidates] == pytest.approx(
            best.values.exp().tolist(), rel=1e-3
        )


def test_xlnet_in_a_batch_of_other_lengths_answers_alike(xlnet: cm.Model) -> None:
    texts = [TEXT, "Rain fell.", TEXT + " It rained."]
    together = score(xlnet, texts, batch_size=7)
    apart = [score(xlnet, [text], batch_size=1)[0] for text in texts]
    assert [s.kind for s in together] == ["pseudo-log-likelihood"] * 3
    assert [s.total for s in together] == pytest.approx([s.total for s in apart], rel=1e-4)


def test_xlnet_never_sees_what_it_predicts(xlnet: cm.Model) -> None:
    """The piece under the gap may be any: the answer is the same."""
    first, second = (f"The river was very {word} in the morning." for word in ("cold", "old"))
    a, b = (xlnet.encode([text])[0] for text in (first, second))
    changed = [p for p, (x, y) in enumerate(zip(a.ids, b.ids, strict=True)) if x != y]
    assert changed
    left, right = (fill(xlnet, text, masks=changed, top_k=5) for text in (first, second))
    assert [p.candidates for p in left.predictions] == [p.candidates for p in right.predictions]


def test_xlnet_refuses_cases_that_it_does_not_have(xlnet: cm.Model) -> None:
    with pytest.raises(InputError, match="cannot be kept"):
        fill(xlnet, TEXT, kept=[2])
    with pytest.raises(InputError, match="cannot be random"):
        fill(xlnet, TEXT, replaced={2: 9})


def test_a_causal_model_predicts_from_the_left_alone(causal: cm.Model) -> None:
    result = fill(causal, TEXT, masks=[5], top_k=6)
    assert result.head == "causal"
    ids = causal.encode([TEXT])[0].ids
    with torch.inference_mode():
        out = causal.encoder(cm.Batch(input_ids=torch.tensor([ids[:5]])))
        logs = causal.heads["causal"](out.hidden)[0, -1].log_softmax(-1)
    (prediction,) = result.predictions
    best = logs.topk(6)
    assert [c.id for c in prediction.candidates] == best.indices.tolist()
    assert prediction.original is not None
    assert prediction.original.probability == pytest.approx(float(logs[ids[5]].exp()), rel=1e-4)


def test_the_log_likelihood_of_a_causal_model_follows_the_chain_rule(causal: cm.Model) -> None:
    (scored,) = score(causal, [TEXT])
    ids = causal.encode([TEXT])[0].ids
    expected = []
    for position in range(1, len(ids) - 1):
        with torch.inference_mode():
            out = causal.encoder(cm.Batch(input_ids=torch.tensor([ids[:position]])))
            logs = causal.heads["causal"](out.hidden)[0, -1].log_softmax(-1)
        expected.append(float(logs[ids[position]]))
    assert scored.kind == "log-likelihood"
    assert [t.score for t in scored.per_token] == pytest.approx(expected, rel=1e-4)
    assert scored.total == pytest.approx(math.fsum(expected), rel=1e-4)


def test_a_discriminator_judges_every_token(judge: cm.Model) -> None:
    other = judge.tokenizer.pieces_of("table")[0]
    result = detect(judge, TEXT, replaced={5: other})
    ids = judge.encode([TEXT])[0].ids
    ids[5] = other
    with torch.inference_mode():
        hidden = judge.encoder(cm.Batch(input_ids=torch.tensor([ids]))).hidden
        expected = judge.heads["replaced_token"](hidden)[0].sigmoid()
    assert [v.probability for v in result.verdicts] == pytest.approx(expected.tolist(), rel=1e-4)
    assert [v.position for v in result.verdicts if v.replaced] == [5]
    assert (result.verdicts[5].id, result.verdicts[5].display) == (other, "table")
    assert json.loads(json.dumps(result.to_json())) == result.to_json()


def test_a_discriminator_predicts_no_pieces(judge: cm.Model, model: cm.Model) -> None:
    with pytest.raises(InputError, match="judges tokens and predicts none"):
        fill(judge, TEXT, masks=[2])
    with pytest.raises(InputError, match="no replaced-token head"):
        detect(model, TEXT)
    with pytest.raises(InputError, match="holds no word"):
        detect(judge, TEXT, replaced={0: 7})
    with pytest.raises(InputError, match="outside the vocabulary"):
        detect(judge, TEXT, replaced={2: judge.tokenizer.vocabulary})
    with pytest.raises(InputError, match="Position -2 holds no word"):
        detect(judge, TEXT, replaced={-2: 7})


def test_judges_are_not_asked_while_dropout_is_on(judge: cm.Model) -> None:
    training = judge.clone().train()
    with pytest.raises(InputError, match="training mode"):
        detect(training, TEXT)
    with pytest.raises(InputError, match="training mode"):
        judge_pair(training, "Rain fell.", "The river rose.")


def test_pairs_are_judged_by_the_head_that_is_there(judge: cm.Model, model: cm.Model) -> None:
    result = judge_pair(judge, "Rain fell.", "The river rose.")
    assert (result.head, result.labels) == ("sentence_order", ("in order", "swapped"))
    assert sum(result.probabilities) == pytest.approx(1.0)
    batch = judge.batch([("Rain fell.", "The river rose.")])
    with torch.inference_mode():
        logits = judge.heads["sentence_order"](judge.encoder(batch).hidden)[0]
    assert result.probabilities == pytest.approx(logits.softmax(-1).tolist(), rel=1e-4)
    assert judge_pair(model, "Rain fell.", "The river rose.").head == "next_sentence"
    bare = cm.Model.new(model.config, model.tokenizer, heads=["masked_token"]).eval()
    with pytest.raises(InputError, match="no next-sentence or sentence-order head"):
        judge_pair(bare, "Rain fell.", "The river rose.")


def test_a_forger_draws_from_its_own_distribution(model: cm.Model) -> None:
    encoding = model.encode([TEXT])[0]
    seen = list(encoding.ids)
    seen[2] = seen[5] = model.tokenizer.mask_id
    with torch.inference_mode():
        hidden = model.encoder(cm.Batch(input_ids=torch.tensor([seen]))).hidden
        logits = model.heads["masked_token"](hidden)[0, 5]
    random = torch.Generator().manual_seed(1)
    drawn = [forge(model, TEXT, [2, 5], random=random).samples[1] for _ in range(400)]
    shares = logits.softmax(-1)
    best = int(shares.argmax())
    expected = float(shares[best])
    found = sum(sample.id == best for sample in drawn) / len(drawn)
    assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / len(drawn))
    assert len({sample.id for sample in drawn}) > 5
    for sample in drawn[:20]:
        assert sample.probability == pytest.approx(float(shares[sample.id]), rel=1e-3)
        assert sample.lucky == (sample.id == encoding.ids[5])
        assert sample.original == encoding.ids[5]
        assert sample.original_probability == pytest.approx(
            float(shares[encoding.ids[5]]), rel=1e-3
        )
    milder = (logits[: model.tokenizer.vocabulary] / 3).softmax(-1)
    warm = forge(model, TEXT, [2, 5], random=random, temperature=3.0).samples[1]
    assert warm.probability == pytest.approx(float(milder[warm.id]), rel=1e-3)
    cold = forge(model, TEXT, [5], random=random, temperature=0.01).samples[0]
    alone = fill(model, TEXT, masks=[5]).predictions[0].candidates[0]
    assert cold.id == alone.id


def test_the_second_text_is_read_and_a_lost_end_is_told(judge: cm.Model, model: cm.Model) -> None:
    pair = ("Rain fell.", "The river rose.")
    batch = judge.batch([pair])
    with torch.inference_mode():
        chances = judge.heads["replaced_token"](judge.encoder(batch).hidden)[0].sigmoid()
    found = detect(judge, pair[0], pair=pair[1])
    assert [v.probability for v in found.verdicts] == pytest.approx(chances.tolist(), rel=1e-4)
    random = torch.Generator().manual_seed(1)
    last = len(found.verdicts) - 3  # "rose"
    (sample,) = forge(model, pair[0], [last], random=random, pair=pair[1]).samples
    assert model.tokenizer.piece(sample.original) == "rose"
    for cut, second in ((False, pair[1]), (True, "river " * 600)):
        assert detect(judge, pair[0], pair=second).truncated == cut
        assert judge_pair(judge, pair[0], second).truncated == cut
        assert forge(model, pair[0], [2], random=random, pair=second).truncated == cut


def test_a_forgery_repeats_with_its_seed(model: cm.Model) -> None:
    draws = [
        forge(model, TEXT, [1, 2, 3, 5], random=torch.Generator().manual_seed(seed))
        for seed in (3, 3, 4)
    ]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert forge(model, TEXT, [], random=torch.Generator()).samples == []


@pytest.mark.parametrize(
    ("masks", "temperature", "message"),
    [
        ([0], 1.0, "cannot be hidden"),
        ([99], 1.0, "cannot be hidden"),
        ([-2], 1.0, "Position -2 holds no word"),
        ([2], 0.0, "temperature"),
        ([2], 10.5, "The temperature is 10.5"),
        (list(range(600)), 1.0, "600 positions are too many; at most 512"),
    ],
)
def test_unusable_forgeries(
    model: cm.Model, masks: list[int], temperature: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        forge(model, TEXT, masks, random=torch.Generator(), temperature=temperature)
