"""Numbers that are not finite: refused at once on the CPU, masked on the device elsewhere."""

import pytest
import torch

from core_models.batch import Batch
from core_models.objectives import Losses
from core_models.training.feed import Drawn
from core_models.training.guard import Guard
from core_models.training.meter import Meter, line, means
from core_models.training.validation import measure

CPU = torch.device("cpu")


def trained(bad: int | None) -> tuple[torch.Tensor, Guard]:
    """A parameter after six updates, whose gradient is not finite at number ``bad``."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.1, fused=True)
    guard = Guard(CPU, immediate=False)
    for step in range(1, 7):
        weight.grad = torch.full_like(weight, float("nan") if step == bad else 1.0)
        known = guard.watch([torch.tensor(1.0)], weight.grad.norm())
        assert not known, "nobody asks at every step"
        guard.apply([optimizer])
        optimizer.step()
    return weight.detach(), guard


def test_no_update_is_made_from_the_bad_one_on() -> None:
    whole, guard = trained(None)
    assert guard.settle() == (6, False)
    assert guard.settle() == (0, False)
    broken, guard = trained(4)
    assert guard.settle() == (3, True)
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.1, fused=True)
    for _ in range(3):
        weight.grad = torch.ones(3)
        optimizer.step()
    torch.testing.assert_close(broken, weight.detach(), atol=0, rtol=0)
    assert not torch.equal(broken, whole)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_the_cpu_asks_at_every_step(value: float) -> None:
    guard = Guard(CPU)
    assert guard.immediate
    assert not guard.watch([torch.tensor(1.0)], torch.tensor(2.0))
    assert guard.watch([torch.tensor(value)], torch.tensor(2.0))
    other = Guard(CPU)
    assert other.watch([torch.tensor(1.0)], torch.tensor(value))


def test_a_meter_that_is_saved_goes_on_with_the_same_bits() -> None:
    pairs = [{"a_loss": torch.tensor([0.1 * n, 3.0], dtype=torch.float64)} for n in range(9)]
    whole, first = Meter(CPU), Meter(CPU)
    for pair in pairs:
        whole.add(pair)
    for pair in pairs[:4]:
        first.add(pair)
    second = Meter(CPU, first.sums())
    for pair in pairs[4:]:
        second.add(pair)
    assert second.sums() == whole.sums()


def test_the_total_weights_the_parts() -> None:
    sums = {"a_loss": [6.0, 3.0], "a_accuracy": [1.0, 2.0], "b_loss": [5.0, 0.0]}
    found = means(sums, {"a": 10.0, "b": 1.0})
    assert found == {"loss": 20.0, "a_loss": 2.0, "a_accuracy": 0.5}
    record = {"step": 3, "tokens_per_second": 12.4, **found, "validation_loss": 4.0}
    record["validation_a_accuracy"] = 0.25
    assert line(record, 9) == (
        "step 3/9, loss 20.000, a 50.0% right, held-out loss 4.000, held-out a 25.0% right, "
        "12 tokens/s"
    )


@pytest.mark.parametrize(("labels", "total"), [(2, {"loss": 12.0}), (0, {})])
def test_held_out_text_without_labels_of_a_part_has_no_total(labels: int, total: dict) -> None:
    """Spans at the edges alone, say: half of a total beside that of training looks like a feat."""

    class Told(torch.nn.Module):
        def forward(self, batch: Batch) -> Losses:
            pairs = {"a_loss": (10.0, 1), "b_loss": (2.0 * labels, labels)}
            metrics = {n: (torch.tensor(s), torch.tensor(c)) for n, (s, c) in pairs.items()}
            return Losses(sums={}, counts={}, weights={}, metrics=metrics)

    drawn = [Drawn(Batch(input_ids=torch.tensor([[1, 2]])), 2)]
    found = measure(Told(), drawn, weights={"a": 1.0, "b": 1.0}, device=CPU)
    parts = {"a_loss": 10.0} | ({"b_loss": 2.0} if labels else {})
    assert found == total | parts
    record = {f"validation_{name}": value for name, value in found.items()}
    said = line({"step": 1, "tokens_per_second": 1.0, "loss": 1.0, **record}, 9)
    assert ("held-out loss" in said) == bool(total)
