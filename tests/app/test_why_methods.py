"""The methods of the Why tab: each by hand on a linear function, and on the shipped model."""

from itertools import chain

import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients, Saliency

from app.labs.why.methods import METHODS, Options, Watched, agreement, attribute, hidden_groups
from core_models.prediction import fill
from core_models.prediction.passes import seen_with
from core_models.prediction.targets import Target, TargetFunction, frozen_copy
from core_models.prediction.targets import baseline as empty
from tests.app.why_questions import MARKS, MODEL, TEXT, ask


class Linear:
    """w . x over all vectors, as a target function."""

    def __init__(self, vectors, weights):
        self.vectors, self.weights = vectors, weights

    def __call__(self, vectors):
        return (vectors * self.weights).sum((1, 2))


def test_every_method_on_a_linear_function_by_hand(why_session):
    model = frozen_copy(why_session.model("sleuth"))
    (encoding,) = model.encode(["Bees make honey"])
    table = model.encoder.embeddings.pieces.weight
    vectors = table[torch.tensor(encoding.ids)][None]
    weights = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(1))
    told = []
    options = Options(steps=10)
    found = {
        method: attribute(
            method, Watched(Linear(vectors, weights), 99, told.append), model, encoding, options
        )
        for method in METHODS
    }
    words = torch.tensor([not special for special in encoding.special])[:, None]
    gap = torch.where(words, table[model.tokenizer.mask_id], vectors[0])
    expected = {
        "integrated": ((vectors - gap) * weights).sum(-1)[0],
        "gradient": (vectors * weights).sum(-1)[0],
        "saliency": weights.norm(dim=-1)[0],
    }
    for method, values in expected.items():
        assert found[method]["values"] == pytest.approx(values.tolist(), abs=1e-5)
    # Pieces of one word are hidden together, special ones alone.
    drop = ((vectors - table[model.tokenizer.mask_id]) * weights).sum(-1)[0]
    for place, value in enumerate(found["occlusion"]["values"]):
        word = encoding.words[place]
        together = (
            [p for p, w in enumerate(encoding.words) if w == word] if word is not None else []
        )
        assert value == pytest.approx(float(drop[together or [place]].sum()), abs=1e-4)
    difference = ((vectors - gap) * weights).sum()
    assert found["integrated"]["start"] == pytest.approx(
        float((vectors * weights).sum() - difference), abs=1e-4
    )
    assert len(told) >= 5  # each pass is watched


def asked(why_session, baseline, scale):
    """The function behind the question with `MARKS`, and the vectors that say nothing."""
    model = frozen_copy(why_session.model(MODEL))
    (encoding,) = model.encode([TEXT])
    seen = seen_with(encoding, {6: model.tokenizer.mask_id})
    target = Target(kind="piece", position=6, answer=encoding.ids[6], scale=scale)
    return TargetFunction(model, seen, target), empty(model, seen, baseline)


def test_gradients_are_those_of_captum(explainer, why_session):
    found = ask(explainer, marks=MARKS, scale="logit")["answer"]["methods"]
    function, _ = asked(why_session, "mask", "logit")
    expected = InputXGradient(function).attribute(function.vectors).sum(-1)[0]
    assert found["gradient"] == pytest.approx(expected.tolist(), abs=1e-5)
    expected = Saliency(function).attribute(function.vectors).norm(dim=-1)[0]
    assert found["saliency"] == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("baseline", "scale"), [("mask", "log_probability"), ("pad", "probability"), ("zero", "logit")]
)
def test_integrated_gradients_are_complete_within_their_delta(
    explainer, why_session, baseline, scale
):
    function, start = asked(why_session, baseline, scale)
    errors = {}
    for steps in (10, 200):
        answer = ask(explainer, marks=MARKS, baseline=baseline, scale=scale, steps=steps)["answer"]
        total = sum(answer["methods"]["integrated"])
        assert answer["sum"] == pytest.approx(total)
        assert answer["error"] == pytest.approx(total - (answer["value"] - answer["start"]))
        _, delta = IntegratedGradients(function).attribute(
            function.vectors, start, n_steps=steps, return_convergence_delta=True
        )
        assert answer["error"] == pytest.approx(delta.item(), abs=2e-5)
        errors[steps] = abs(answer["error"])
    assert errors[200] < max(1e-4, errors[10] + 1e-6)
    assert errors[200] < 0.01 * max(0.1, abs(answer["value"] - answer["start"]))


def test_values_are_those_of_fill(explainer, why_session):
    model = why_session.model(MODEL)
    found = ask(explainer, marks=MARKS, scale="probability")
    (prediction,) = fill(model, TEXT, masks=[6], top_k=5).predictions
    assert found["answer"]["value"] == pytest.approx(prediction.original.probability, abs=1e-6)
    best = {c.id: c.probability for c in prediction.candidates}
    shown = {c["index"]: c["probability"] for c in found["scene"]["choices"]}
    assert all(shown[index] == pytest.approx(chance, abs=1e-6) for index, chance in best.items())
    assert found["scene"]["answer"] == prediction.original.id
    assert [c["original"] for c in found["scene"]["choices"]].count(True) == 1


@pytest.mark.parametrize(
    ("window", "baseline"), [(1, "mask"), (2, "mask"), (3, "zero"), (8, "mask"), (1, "pad")]
)
def test_occlusion_is_the_mean_drop_over_the_windows_that_cover_a_word(
    explainer, why_session, window, baseline
):
    found = ask(explainer, marks=MARKS, window=window, baseline=baseline)
    model = frozen_copy(why_session.model(MODEL))
    table = model.encoder.embeddings.pieces.weight
    gap = {"mask": table[model.tokenizer.mask_id], "pad": table[0], "zero": 0 * table[0]}
    (encoding,) = model.encode([TEXT])
    target = Target(kind="piece", position=6, answer=encoding.ids[6])
    function = TargetFunction(model, seen_with(encoding, {6: model.tokenizer.mask_id}), target)

    def value(*hidden):
        vectors = function.vectors.clone()
        vectors[0, list(hidden)] = gap[baseline]
        with torch.no_grad():
            return float(function(vectors))

    whole = value()
    words = list(range(1, 8))  # every word of this text is one piece
    for place in (0, 2, 4, 8):
        drops = []
        for begin in range(min(window, len(words))):
            if place in words:
                mine = (place - 1 - begin) // window
                hidden = [p for p in words if (p - 1 - begin) // window == mine]
            else:
                hidden = [place]
            drops.append(whole - value(*hidden))
        expected = sum(drops) / len(drops)
        assert found["answer"]["methods"]["occlusion"][place] == pytest.approx(expected, abs=1e-4)


def test_windows_cover_every_word_equally_often(why_session):
    model = why_session.model(MODEL)
    (encoding,) = model.encode(["Unbelievably large windows of words are moved over it ."])
    for window in (1, 3, 8):
        masks = hidden_groups(encoding, window)
        assert len(masks) == window
        for mask in masks:
            groups = [
                [p for p, g in enumerate(mask.tolist()) if g == n] for n in set(mask.tolist())
            ]
            assert sorted(chain(*groups)) == list(range(len(encoding)))
            for group in groups:
                words = {encoding.words[p] for p in group}
                assert len(words) <= window
                if any(encoding.special[p] for p in group):
                    assert len(group) == 1


def test_a_contrast_is_the_difference_of_both_attributions(explainer):
    paris, london, both = (
        ask(explainer, marks=MARKS, scale="logit", **words)["answer"]
        for words in ({"word": "paris"}, {"word": "london"}, {"word": "paris", "against": "london"})
    )
    assert both["value"] == pytest.approx(paris["value"] - london["value"], abs=1e-4)
    for method in ("integrated", "gradient", "occlusion"):
        rows = zip(paris["methods"][method], london["methods"][method], strict=True)
        expected = [a - b for a, b in rows]
        assert both["methods"][method] == pytest.approx(expected, abs=2e-3)


def test_ranks_agree_with_scipy_and_ignore_signs():
    from scipy.stats import spearmanr

    rows = {"a": [0.0, 1.0, -5.0, 3.0, 3.0, 9.0], "b": [9.0, 0.1, 0.4, -0.2, 0.8, 7.0]}
    kept = [False, True, True, True, True, True]
    expected = spearmanr([1, 5, 3, 3, 9], [0.1, 0.4, 0.2, 0.8, 7]).statistic
    found = agreement(rows, kept)
    assert found[0][1] == pytest.approx(expected) == found[1][0]
    assert found[0][0] == pytest.approx(1)
    assert agreement({"a": [1.0, 1.0, 1.0]}, [True] * 3) == [[None]]
    assert agreement({"a": [1.0, 2.0]}, [True] * 2) == [[None]]


@pytest.mark.slow
def test_the_check_draws_the_top_anew(explainer):
    found = ask(explainer, marks=MARKS, seed=3)["answer"]
    assert [stage["blocks"] for stage in found["stages"]] == [0, 1, 2, 3, 4]
    again = ask(explainer, marks=MARKS, seed=3)["answer"]
    assert again == found
    other = ask(explainer, marks=MARKS, seed=4)["answer"]
    assert other["stages"] != found["stages"]
    base = ask(explainer, marks=MARKS)["answer"]
    assert all(stage["value"] < base["value"] - 1 for stage in found["stages"])
    values = [v for stage in found["stages"] for v in stage["alike"].values() if v is not None]
    assert all(-1.0001 <= value <= 1.0001 for value in values)
    assert min(values) < 0.9


def test_the_code_on_the_page_gives_the_same_numbers(explainer, capsys):
    chosen = {"word": "paris", "against": "london", "baseline": "zero", "window": 2}
    found = ask(explainer, marks=MARKS, steps=30, **chosen)
    place: dict = {}
    exec(found["code"], place)
    methods = found["answer"]["methods"]
    for name in METHODS:
        assert place[name].tolist() == pytest.approx(methods[name], abs=1e-4)
    assert "the sum misses the difference by" in capsys.readouterr().out
    pair = ask(explainer, kind="class", second='It\'s "large" .', steps=10)
    exec(pair["code"], place)
    assert place["integrated"].tolist() == pytest.approx(
        pair["answer"]["methods"]["integrated"], abs=1e-4
    )
