"""Losses of fine-tuning by hand, and that parts of a batch add up to the whole."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import core_models as cm
from core_models.tasks import objectives
from core_models.tasks.encode import Coder
from core_models.tasks.heads import head_for, ready
from core_models.tasks.settings import Settings
from tests.tasks.conftest import first_rows


class Fixed(nn.Module):
    """A head that always gives the same answer."""

    def __init__(self, answer: Tensor) -> None:
        super().__init__()
        self.value = nn.Parameter(answer)

    def answer(self, *_: Any) -> Tensor:
        return self.value


def losses(name: str, answer: Tensor, **labels: Tensor) -> Any:
    ids = torch.zeros(len(answer), 3, dtype=torch.long)
    batch = cm.Batch(input_ids=ids, **labels)
    objective = objectives.build(name, Fixed(answer))
    found = objective(None, batch)  # type: ignore[arg-type]
    assert float(objective.counts(batch)[name]) == float(found.counts[name])
    return found


def test_classes_by_hand() -> None:
    logits = torch.tensor([[0.0, math.log(3)], [0.0, 0.0], [5.0, 0.0]])
    found = losses("classify", logits, class_labels=torch.tensor([1, 0, -100]))
    assert found.sums["classify"].item() == pytest.approx(math.log(4 / 3) + math.log(2))
    assert found.total.item() == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)
    assert [float(v) for v in found.metrics["classify_accuracy"]] == [2, 2]


def test_scores_by_hand() -> None:
    found = losses(
        "regress", torch.tensor([0.5, 1.0, 9.0]), score_labels=torch.tensor([0.0, 0.5, math.nan])
    )
    assert found.total.item() == pytest.approx((0.25 + 0.25) / 2)
    assert "regress_accuracy" not in found.metrics


def test_only_labelled_pieces_count() -> None:
    logits = torch.zeros(1, 3, 4)
    logits[0, 1] = torch.tensor([100.0, 0, 0, 0])
    found = losses("tag", logits, tag_labels=torch.tensor([[-100, 0, 2]]))
    assert found.sums["tag"].item() == pytest.approx(math.log(4))
    assert float(found.counts["tag"]) == 2


def test_spans_by_hand_without_padding() -> None:
    logits = torch.zeros(2, 3, 2)
    found = losses(
        "span",
        logits,
        answer_starts=torch.tensor([0, 1]),
        answer_ends=torch.tensor([0, 1]),
        attention_mask=torch.tensor([[True, True, False], [True, True, True]]),
    )
    # Two tokens to choose from in the first row, three in the second; start and end each half.
    assert found.sums["span"].item() == pytest.approx(math.log(2) + math.log(3))


@pytest.mark.parametrize(
    ("name", "answer", "field"),
    [
        ("classify", torch.zeros(2, 3), {"class_labels": torch.full((2,), -100)}),
        ("tag", torch.zeros(2, 3, 4), {"tag_labels": torch.full((2, 3), -100)}),
        ("regress", torch.zeros(2), {"score_labels": torch.full((2,), math.nan)}),
        (
            "span",
            torch.zeros(2, 3, 2),
            {"answer_starts": torch.full((2,), -100), "answer_ends": torch.full((2,), -100)},
        ),
    ],
)
def test_without_labels_loss_and_gradient_are_zero(
    name: str, answer: Tensor, field: dict[str, Tensor]
) -> None:
    head = Fixed(answer)
    batch = cm.Batch(input_ids=torch.zeros(2, 3, dtype=torch.long), **field)
    found = objectives.build(name, head)(None, batch)  # type: ignore[arg-type]
    found.total.backward()
    assert float(found.total) == 0.0
    assert head.value.grad is not None
    assert (head.value.grad == 0).all()


@pytest.mark.parametrize(
    ("name", "apart"),
    [("topic", False), ("similarity", False), ("similarity", True), ("ner", False), ("qa", False)],
)
def test_parts_add_up_to_the_whole(model: cm.Model, name: str, apart: bool) -> None:
    task = first_rows(name, 6)
    settings = Settings(apart=apart)
    tuned = ready(model, task, settings).eval()
    head = head_for(task, settings)
    objective = objectives.build(head, tuned.heads[head])
    coder = Coder.of(tuned, task, apart=apart, max_length=80)
    features = coder.features(task.train)
    whole = coder.batch(features)
    total = objective(tuned.encoder, whole).total
    counts = objective.counts(whole)
    parts = [
        objective(tuned.encoder, coder.batch(features[begin : begin + 2])).total_over(counts)
        for begin in range(0, len(features), 2)
    ]
    torch.testing.assert_close(torch.stack(parts).sum(), total, atol=1e-5, rtol=1e-5)


def test_missing_labels_name_their_field(bert: cm.Model) -> None:
    batch = replace(bert.batch(["x"]))
    with pytest.raises(ValueError, match=r"batch\.class_labels"):
        objectives.build("classify", nn.Module()).counts(batch)
