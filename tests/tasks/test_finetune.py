"""Fine-tuning: it learns, repeats, resumes to the bit, and says what is wrong."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import core_models as cm
from core_models.errors import InputError
from core_models.tasks.decode import predict
from core_models.tasks.heads import head_for, ready
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet, from_rows
from core_models.tasks.settings import Settings, usual_rate
from core_models.training import optimizer
from core_models.training.finetune import FineTuning, Progress, conclude, finetune
from core_models.training.schema import OptimizerSettings
from tests.core import tiny_models
from tests.tasks.conftest import first_rows, tiny

QUICK = Settings(learning_rate=5e-3, epochs=3, batch_size=4, max_length=64)


def on_itself(name: str, rows: int = 8) -> TaskSet:
    """A few rows to learn by heart."""
    task = first_rows(name, rows)
    return replace(task, dev=task.train)


def weights(model: cm.Model) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.mark.parametrize(
    ("name", "options", "metric", "reached"),
    [
        ("topic", {}, "accuracy", 1.0),
        ("nli", {}, "accuracy", 1.0),
        ("similarity", {}, "pearson", 0.95),
        ("similarity", {"apart": True}, "pearson", 0.95),
        ("ner", {}, "entity_f1", 0.95),
        ("ner-zh", {"every_step": True, "epochs": 45}, "entity_f1", 0.95),
        ("qa", {"max_length": 100, "epochs": 20}, "f1", 0.95),
    ],
)
def test_eight_rows_are_learnt_by_heart(
    bert: cm.Model, name: str, options: dict[str, Any], metric: str, reached: float
) -> None:
    task = on_itself(name, 4 if name == "qa" else 8)
    settings = replace(QUICK, **{"epochs": 25, "dropout": 0.0, **options})
    result = finetune(bert, task, settings)
    assert result.report.metrics[metric] >= reached
    assert result.report.main == metric
    assert result.history[0].loss > 5 * result.history[-1].loss
    assert result.baselines


@pytest.mark.slow
def test_every_family_learns(model: cm.Model) -> None:
    result = finetune(model, on_itself("topic"), replace(QUICK, epochs=30, dropout=0.0))
    assert result.report.metrics["accuracy"] == 1.0


def test_the_given_model_is_not_changed(bert: cm.Model) -> None:
    before = weights(bert)
    finetune(bert, on_itself("topic"), replace(QUICK, epochs=1))
    assert equal(before, weights(bert))
    assert "classify" not in bert.heads


def test_seeds_repeat_and_differ(bert: cm.Model) -> None:
    task = on_itself("topic")
    torch.manual_seed(1)
    first = finetune(bert, task, QUICK)
    torch.manual_seed(2)
    drawn = torch.rand(3)
    torch.manual_seed(2)
    second = finetune(bert, task, QUICK)
    assert equal(weights(first.model), weights(second.model))
    assert [h.loss for h in first.history] == [h.loss for h in second.history]
    assert torch.equal(torch.rand(3), drawn)  # PyTorch's own generator was left alone
    other = finetune(bert, task, replace(QUICK, seed=2))
    assert not equal(weights(first.model), weights(other.model))


@pytest.mark.parametrize("at", [1, 2, 3, 5])
def test_a_resume_ends_with_the_same_bits(bert: cm.Model, at: int) -> None:
    task = on_itself("topic")  # two steps in an epoch, dropout on
    whole = FineTuning(bert, task, QUICK)
    drive(whole)
    broken = FineTuning(bert, task, QUICK)
    drive(broken, until=at)
    tensors, values = broken.state_dict()
    values = json.loads(json.dumps(values))
    drive(broken, until=at + 1)  # what comes after the state was taken must not matter
    resumed = FineTuning(bert, task, QUICK)
    resumed.load_state_dict(tensors, values)
    drive(resumed)
    assert equal(weights(whole.model), weights(resumed.model))
    assert whole.history == resumed.history
    ends = [conclude(tuning) for tuning in (whole, resumed)]
    assert equal(*(weights(end.model) for end in ends))
    assert ends[0].best_epoch == ends[1].best_epoch


def test_it_goes_on_where_generators_have_states_of_another_length(bert: cm.Model) -> None:
    """A GPU's has 16 bytes, a CPU's some 5,000; the run goes on, with other draws."""
    task = on_itself("topic")
    broken = FineTuning(bert, task, QUICK)
    drive(broken, until=3)
    tensors, values = broken.state_dict()
    ends = []
    for _ in range(2):
        resumed = FineTuning(bert, task, QUICK)
        elsewhere = torch.zeros(16, dtype=torch.uint8)
        resumed.load_state_dict({**tensors, "dropout": elsewhere}, values)
        assert resumed.progress.step == 3
        drive(resumed)
        ends.append(weights(resumed.model))
    assert equal(*ends)


def drive(tuning: FineTuning, until: int = 10**6) -> None:
    while not tuning.finished and (tuning.progress.step < until or tuning.epoch_ended):
        if tuning.epoch_ended:
            tuning.end_epoch()
        else:
            tuning.step()


def test_a_state_of_other_settings_is_refused(bert: cm.Model) -> None:
    task = on_itself("topic")
    state = FineTuning(bert, task, QUICK).state_dict()
    with pytest.raises(InputError, match="other settings"):
        FineTuning(bert, task, replace(QUICK, seed=9)).load_state_dict(*state)


def test_epochs_of_another_measure_are_refused(bert: cm.Model) -> None:
    """As of a set whose plain B and I were measured word by word when the run was stopped."""
    task = on_itself("topic")
    tuning = FineTuning(bert, task, QUICK)
    drive(tuning, until=tuning.epoch)
    tuning.end_epoch()
    tensors, values = tuning.state_dict()
    FineTuning(bert, task, QUICK).load_state_dict(tensors, values)
    del values["history"][0]["metrics"]["accuracy"]
    with pytest.raises(InputError, match="not measured by accuracy"):
        FineTuning(bert, task, QUICK).load_state_dict(tensors, values)


def test_the_best_epoch_is_kept(bert: cm.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter([0.5, 0.9, 0.9, 0.7])
    monkeypatch.setattr(
        "core_models.training.finetune.report",
        lambda *_: SimpleNamespace(metrics={"accuracy": next(said)}),
    )
    tuning = FineTuning(bert, on_itself("topic"), replace(QUICK, epochs=4))
    kept = []
    while not tuning.finished:
        drive(tuning, until=tuning.progress.step + 1)
        if len(tuning.history) > len(kept):
            kept.append(weights(tuning.model))
    tuning.use_best()
    assert tuning.best_epoch == 2
    assert equal(weights(tuning.model), kept[1])
    assert not equal(weights(tuning.model), kept[2])


def test_progress_and_stop(bert: cm.Model) -> None:
    told: list[Progress] = []
    result = finetune(
        bert, on_itself("topic"), QUICK, progress=told.append, stop=lambda: len(told) >= 4
    )
    # Two steps, the measurement of the first epoch, a third step.
    assert [(p.step, bool(p.metrics)) for p in told] == [
        (1, False),
        (2, False),
        (2, True),
        (3, False),
    ]
    assert told[0].steps == 6
    assert result.stopped
    assert result.best_epoch == 1
    assert not finetune(bert, on_itself("topic"), QUICK).stopped


def test_stopped_before_the_first_epoch_still_measures(bert: cm.Model) -> None:
    result = finetune(bert, on_itself("topic"), QUICK, stop=lambda: True)
    assert result.stopped
    assert result.best_epoch == 0
    assert len(result.predictions) == 8


def test_small_models_learn_faster_unless_told(bert: cm.Model) -> None:
    assert [usual_rate(width) for width in (128, 256, 512, 768)] == [5e-4, 5e-4, 1e-4, 3e-5]
    assert FineTuning(bert, on_itself("topic"), Settings()).rate == 5e-4
    assert FineTuning(bert, on_itself("topic"), QUICK).rate == 5e-3


def test_the_rate_rises_and_falls() -> None:
    schedule = optimizer.Schedule(steps=10, warmup=2)
    shares = [schedule.share(step) for step in range(10)]
    assert shares == [0.5, 1.0, *(pytest.approx((10 - s) / 8) for s in range(2, 10))]
    assert optimizer.Schedule(steps=10, warmup=0).share(0) == 1.0


def test_lower_blocks_learn_slower(tokenizers: dict[str, cm.Tokenizer]) -> None:
    model = ready(tiny("bert", tokenizers, layers=3), on_itself("topic"), QUICK)
    names = optimizer.freeze(model, 0)
    options = OptimizerSettings(learning_rate=1.0, weight_decay=0.1)
    made = optimizer.adamw(names, options, optimizer.by_depth(3, 1.0, 0.5))
    found = {}
    for group in made.param_groups:
        for parameter in group["params"]:
            name = next(n for n, p in names.items() if p is parameter)
            found[name] = (group["peak"], group["weight_decay"])
    assert found.keys() == names.keys()
    assert found["heads.classify.classifier.weight"] == (1.0, 0.1)
    assert found["heads.classify.classifier.bias"] == (1.0, 0.0)
    assert found["encoder.blocks.2.feed_forward.up.weight"] == (0.5, 0.1)
    assert found["encoder.blocks.0.feed_forward.up.weight"] == (0.125, 0.1)
    assert found["encoder.embeddings.pieces.weight"] == (0.0625, 0.1)


def test_the_last_norm_follows_the_highest_block() -> None:
    model = tiny_models.new(tiny_models.tiny("modernbert-base", layers=3))
    learns = optimizer.freeze(model, 2)
    assert "encoder.final_norm.weight" in learns
    assert not any(name.startswith("encoder.blocks.1.") for name in learns)
    made = optimizer.adamw(
        optimizer.freeze(model, 0),
        OptimizerSettings(learning_rate=1.0),
        optimizer.by_depth(3, 1.0, 0.5),
    )
    norm = model.encoder.final_norm.weight
    assert [g["peak"] for g in made.param_groups if any(p is norm for p in g["params"])] == [0.5]


def test_biases_and_norms_are_not_decayed(model: cm.Model) -> None:
    names = optimizer.freeze(model.clone(), 0)
    options = OptimizerSettings(learning_rate=1.0, weight_decay=0.1)
    made = optimizer.adamw(names, options, optimizer.by_depth(model.config.blocks, 1.0, 1.0))
    decays = {id(p): g["weight_decay"] for g in made.param_groups for p in g["params"]}
    found = {name: decays[id(parameter)] for name, parameter in names.items()}
    assert {v for name, v in found.items() if name.endswith("bias") or "norm" in name} == {0.0}
    assert {v for name, v in found.items() if name.endswith("feed_forward.up.weight")} == {0.1}


def test_frozen_blocks_stay(tokenizers: dict[str, cm.Tokenizer]) -> None:
    model = tiny("bert", tokenizers, layers=3)
    before = weights(model)
    after = weights(finetune(model, on_itself("topic"), replace(QUICK, frozen=2)).model)
    moved = {n for n in before.keys() & after.keys() if not torch.equal(before[n], after[n])}
    assert moved
    assert all(name.startswith("encoder.blocks.2.") for name in moved)
    with pytest.raises(InputError, match="frozen is 4; this model has 3 blocks"):
        FineTuning(model, on_itself("topic"), replace(QUICK, frozen=4))


def test_a_shared_block_is_told(tokenizers: dict[str, cm.Tokenizer]) -> None:
    with pytest.raises(InputError, match="1 block that every step shares"):
        FineTuning(tiny("albert", tokenizers), on_itself("topic"), replace(QUICK, frozen=2))


def test_all_frozen_leaves_the_head(model: cm.Model) -> None:
    settings = replace(QUICK, frozen=model.config.blocks, epochs=1)
    tuning = FineTuning(model, on_itself("topic"), settings)
    assert all(name.startswith("heads.") for name in tuning.names)
    drive(tuning)
    with pytest.raises(InputError, match="nothing is left that could learn"):
        FineTuning(model, on_itself("similarity"), replace(settings, apart=True))


def test_from_scratch_forgets_the_checkpoint(bert: cm.Model) -> None:
    task = on_itself("topic")
    kept = ready(bert, task, QUICK).encoder.state_dict()
    fresh = ready(bert, task, replace(QUICK, pretrained=False)).encoder.state_dict()
    assert torch.equal(kept["embeddings.pieces.weight"], bert.encoder.embeddings.pieces.weight)
    assert not torch.equal(fresh["embeddings.pieces.weight"], kept["embeddings.pieces.weight"])
    again = ready(bert, task, replace(QUICK, pretrained=False)).encoder.state_dict()
    assert equal(fresh, again)


def test_dropout_reaches_every_part(bert: cm.Model) -> None:
    made = ready(bert, on_itself("topic"), replace(QUICK, dropout=0.37))
    dropouts = {m.p for m in made.modules() if isinstance(m, torch.nn.Dropout)}
    assert dropouts <= {0.37, 0.0}
    assert 0.37 in dropouts
    assert made.config.attention.dropout == 0.37
    assert equal(made.encoder.state_dict(), bert.encoder.state_dict())


@pytest.mark.slow
def test_bf16_trains(bert: cm.Model) -> None:
    result = finetune(bert, on_itself("topic"), replace(QUICK, epochs=20, precision="bf16"))
    assert result.report.metrics["accuracy"] >= 0.75


def test_a_diverged_step_is_not_made(bert: cm.Model) -> None:
    tuning = FineTuning(bert, on_itself("topic"), QUICK)
    with torch.no_grad():
        tuning.model.encoder.embeddings.pieces.weight.fill_(float("nan"))
    head = {k: v.clone() for k, v in tuning.model.heads.state_dict().items()}
    with pytest.raises(InputError, match=r"diverged at step 1: .* lower learning rate \(now 0.005"):
        tuning.step()
    assert equal(head, tuning.model.heads.state_dict())
    assert tuning.progress.step == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0}, "learning_rate is 0; allowed is 1e-07 to 1"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": 1.5}, "epochs is 1.5; give a whole number"),  # it would never end
        ({"frozen": 0.5}, "frozen is 0.5; give a whole number"),
        ({"stride": "8"}, "stride is '8'; give a whole number"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"layer_decay": 1.5}, "layer_decay is 1.5"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"precision": "fp16"}, "allowed are fp32 and bf16"),
    ],
)
def test_impossible_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**changes)


def test_apart_needs_scored_pairs(bert: cm.Model) -> None:
    apart = replace(QUICK, apart=True)
    with pytest.raises(InputError, match="this set is of kind classify"):
        head_for(on_itself("topic"), apart)
    single = from_rows("x", "regress", [Row(text=f"t {i}", score=float(i)) for i in range(20)])
    with pytest.raises(InputError, match="only one in each row"):
        head_for(single, apart)


def test_saved_models_predict_the_same(model: cm.Model, tmp_path: Path) -> None:
    task = on_itself("topic")
    tuning = FineTuning(model, task, replace(QUICK, epochs=1))
    drive(tuning)
    tuning.use_best()
    tuning.model.save(tmp_path / "saved")
    loaded = cm.load(tmp_path / "saved")
    assert loaded.heads["classify"].labels == task.labels
    objective = type(tuning.objective)(loaded.heads["classify"])
    again = predict(objective, replace(tuning.coder, model=loaded), task.dev)
    assert again == tuning.predict()
