"""Small sums of the labs that a near miss would leave looking right."""

from types import SimpleNamespace

import pytest
import torch

from app.labs.forge import answers as forge
from app.labs.pairs import answers as pairs
from app.labs.timeline import answers as timeline
from app.runs.reports import scrub as run_scrub
from core_models.masking.tokens import Masked
from core_models.tokenizer import Tokenizer
from tests.core.tiny_models import small_bert


def test_a_curve_of_contexts_is_a_mean_over_the_pieces_that_can_be_hidden():
    """Two of four: [CLS] and [SEP] are never asked for, and so do not thin the mean out."""
    inputs = torch.tensor([[2, 9, 6, 3], [2, 5, 9, 3]])
    labels = torch.tensor([[-100, 5, -100, -100], [-100, -100, 6, -100]])
    masked = Masked(inputs=inputs, labels=labels, cases=(labels >= 0).long())
    found = timeline.contexts(masked, [0, 1, 0], plain=2)
    assert found["growth"] == [1 / 2, 2 / 2, 2 / 2]


@pytest.mark.parametrize(("direction", "told"), [("both", True), ("left", False)])
def test_a_first_token_that_sees_nothing_has_no_cosine(direction, told):
    model = SimpleNamespace(config=SimpleNamespace(attention=SimpleNamespace(direction=direction)))
    one, other = torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])
    found = pairs.cosines(model, (one, one), (other, one))
    assert found["mean"] == pytest.approx(1.0)
    assert found["cls"] == (pytest.approx(24 / 25) if told else None)


def test_a_span_hides_no_piece_that_only_touches_it():
    """Of “it's” in three pieces, the apostrophe alone."""
    encoding = SimpleNamespace(
        ids=[2, 10, 11, 12, 3],
        offsets=[(0, 0), (0, 2), (2, 3), (3, 4), (0, 0)],
        special=[True, False, False, False, True],
    )
    tokenizer = SimpleNamespace(mask_id=4, vocabulary=20)
    assert forge.choose(encoding, tokenizer, [(2, 3)], seed=1) == [2]
    assert forge.choose(encoding, tokenizer, [(0, 2), (3, 4)], seed=1) == [1, 3]


def test_a_forgery_is_caught_from_one_half_on():
    """Chances of 0.6 and 0.4: the first is caught, the second is not, and no real word is."""
    gaps = [{"position": position, "lucky": False, "written": False} for position in (1, 2)]
    tokens = [{"special": position in (0, 4)} for position in range(5)]
    answer = {"gaps": gaps, "after": [0.9, 0.6, 0.4, 0.45, 0.9], "tokens": tokens, "mine": None}
    told = forge.summarise(answer)
    assert told[0] == "It catches 1 of 2 forged words."
    assert "No real word is accused." in told


def test_a_map_without_a_head_is_the_mean_of_all():
    model = small_bert(
        Tokenizer.train(["the red fox sees the small dog"] * 5, vocabulary=100)
    ).eval()
    with torch.inference_mode():
        heads = [run_scrub.attention(model, "red fox", 1, head)["weights"] for head in (0, 1)]
        found = run_scrub.attention(model, "red fox", 1, None)
    assert (found["layer"], found["head"], found["heads"]) == (1, None, 2)
    torch.testing.assert_close(
        torch.tensor(found["weights"]), torch.tensor(heads).mean(0), atol=2e-4, rtol=0
    )
    assert heads[0] != heads[1]
