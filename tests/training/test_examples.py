"""From packed examples to what the objectives ask for, for every masking."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.data.corpus import Corpus
from core_models.data.formats import examples as cut
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.masking.tokens import IGNORED
from core_models.objectives import NEEDS
from core_models.tokenizer import Tokenizer
from core_models.training import settings
from core_models.training.examples import Examples, Masker, rows
from core_models.training.feed import Changed, Feed, Shuffled
from core_models.training.plan import Plan, plan_for
from core_models.training.validation import Validation
from tests.training.conftest import text

SIZES = {"ordering": "xlnet-base", "span": "spanbert-base", "with_replacement": "electra-base"}
KINDS = ("uniform", "whole_word", "ngram", "windowed_ngram", "span", "with_replacement", "ordering")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[TokenStore, Tokenizer]:
    import random

    documents = [d.splitlines() for d in text(12).split("\n\n") if d.strip()]
    tokenizer = Tokenizer.train([s for d in documents for s in d], vocabulary=120, kind="wordpiece")
    corpus = Corpus.encode(documents, tokenizer)
    items = cut("doc_sentences", corpus, max_length=24, generator=random.Random(1))
    folder = tmp_path_factory.mktemp("store") / "store"
    TokenStore.build(folder, corpus, {"train": items}, tokenizer)
    return TokenStore.open(folder), tokenizer


def plan_of(kind: str, **masking: Any) -> tuple[Plan, cm.Config]:
    size = SIZES.get(kind, "deberta-base")
    options = {"kind": kind} | masking
    data = {"texts": ["a.txt"], "format": "doc_sentences", "max_length": 24}
    values = {"model": {"size": size}, "data": data, "steps": 1, "masking": options}
    return plan_for(settings.parse(values), cm.size(size)), cm.size(size)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_masking_fills_what_the_objectives_need(
    store: tuple[TokenStore, Tokenizer], kind: str, dynamic: bool
) -> None:
    plan, config = plan_of(kind, dynamic=dynamic)
    examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)
    chosen = torch.arange(6)
    plain = store[0].batch(chosen)

    def batch(seed: int, order: torch.Tensor = chosen) -> cm.Batch:
        return examples.masked(order, torch.Generator().manual_seed(seed))

    found = batch(1)
    for name in plan.objectives:
        for field in NEEDS[name].fields:
            assert getattr(found, field) is not None, (name, field)
    assert found.input_ids is not None
    if kind == "ordering":
        assert torch.equal(found.input_ids, plain.input_ids)
        assert found.targets is not None
        assert found.target_labels is not None
        asked = found.target_labels != IGNORED
        original = plain.input_ids.gather(1, found.targets)
        assert torch.equal(found.target_labels[asked], original[asked])
        assert bool(asked.any(1).all())
        same = torch.equal(batch(2).target_labels, found.target_labels)
    else:
        assert found.labels is not None
        asked = found.labels != IGNORED
        assert torch.equal(found.labels[asked], plain.input_ids[asked])
        assert torch.equal(found.input_ids[~asked], plain.input_ids[~asked])
        assert not bool((asked & ~plain.maskable).any())
        same = torch.equal(batch(2).labels, found.labels)
    assert same is not dynamic
    if not dynamic:
        # Whoever lies beside an example, and however long, it is hidden the same way.
        turned = batch(5, chosen.flip(0))
        name = "target_labels" if kind == "ordering" else "labels"
        ours = [[v for v in r.tolist() if v != IGNORED] for r in getattr(found, name)]
        theirs = [[v for v in r.tolist() if v != IGNORED] for r in getattr(turned, name).flip(0)]
        assert ours == theirs


def test_fairseq_counts_special_pieces_too(store: tuple[TokenStore, Tokenizer]) -> None:
    plan, config = plan_of("uniform", counting="fairseq", rate=0.5, dynamic=True)
    examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)
    generator = torch.Generator().manual_seed(0)
    found = examples.masked(torch.arange(len(store[0])), generator)
    assert found.labels is not None
    assert bool((found.labels == store[1].cls_id).any())


def test_segments_are_left_out_where_the_table_has_one_row(
    store: tuple[TokenStore, Tokenizer],
) -> None:
    plan, _ = plan_of("uniform")
    masker = Masker(plan, cm.size("roberta-base"), store[1])
    batch = masker(store[0].batch(torch.arange(3)), torch.Generator().manual_seed(0))
    assert batch.segment_ids is None


def test_rows_of_a_batch_take_their_memory_along() -> None:
    ids = torch.arange(12).view(4, 3)
    memory = (torch.arange(8.0).view(4, 1, 2),)
    part = rows(cm.Batch(input_ids=ids, memory=memory), torch.tensor([1, 3]))
    assert part.input_ids is not None
    assert part.input_ids.tolist() == [[3, 4, 5], [9, 10, 11]]
    assert part.memory[0].tolist() == [[[2.0, 3.0]], [[6.0, 7.0]]]


def test_a_batch_made_ahead_is_made_again_after_a_restore(
    store: tuple[TokenStore, Tokenizer],
) -> None:
    plan, config = plan_of("uniform", dynamic=True)

    def feed() -> Feed:
        examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)
        cpu = torch.device("cpu")
        return Feed(Shuffled(examples, batch_size=4, bucketing=1, seed=5, device=cpu))

    whole, first, second = feed(), feed(), feed()
    expected = [next(whole).batch.input_ids for _ in range(9)]
    for number in range(4):
        assert torch.equal(next(first).batch.input_ids, expected[number])
    second.restore(first.place())
    for number in range(4, 9):
        assert torch.equal(next(second).batch.input_ids, expected[number])
    for each in (whole, first, second):
        each.close()


def test_what_goes_wrong_in_the_second_thread_is_raised(
    store: tuple[TokenStore, Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, config = plan_of("uniform")
    examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)
    stream = Shuffled(examples, batch_size=4, bucketing=1, seed=5, device=torch.device("cpu"))
    broken: Callable[..., cm.Batch] = lambda *_, **__: 1 / 0  # type: ignore[assignment,return-value]  # noqa: E731
    monkeypatch.setattr(examples, "masked", broken)
    feed = Feed(stream)
    with pytest.raises(ZeroDivisionError):
        next(feed)
    feed.close()


def test_a_place_of_another_device_is_gone_on_from(store: tuple[TokenStore, Tokenizer]) -> None:
    """As of a GPU, whose generators' states are shorter: the order stays, the draws do not."""
    plan, config = plan_of("uniform", dynamic=True)
    examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)

    def stream() -> Shuffled:
        return Shuffled(examples, batch_size=4, bucketing=1, seed=5, device=torch.device("cpu"))

    first = stream()
    first.draw()
    place = first.place()
    expected = first.draw().batch
    states = {**place.states, "masking": torch.zeros(16, dtype=torch.uint8)}
    found = []
    for _ in range(2):
        other = stream()
        other.restore(replace(place, states=states))
        found.append(other.draw().batch)
    assert torch.equal(found[0].input_ids, found[1].input_ids)
    assert found[0].attention_mask is not None
    assert expected.attention_mask is not None
    assert torch.equal(found[0].attention_mask, expected.attention_mask)
    assert not torch.equal(found[0].input_ids, expected.input_ids)


def test_tokens_are_counted_without_padding(store: tuple[TokenStore, Tokenizer]) -> None:
    plan, config = plan_of("uniform")
    examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)
    stream = Shuffled(examples, batch_size=4, bucketing=1, seed=5, device=torch.device("cpu"))
    for _ in range(3):
        drawn = stream.draw()
        assert drawn.batch.attention_mask is not None
        assert drawn.tokens == int(drawn.batch.attention_mask.sum())


def test_longer_examples_follow_shorter_ones_from_any_place(
    store: tuple[TokenStore, Tokenizer],
) -> None:
    """Over the ends of epochs of both; the share that is hidden falls over all steps."""
    plan, config = plan_of("uniform", dynamic=True, rate=0.6, last_rate=0.2)
    examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)
    cpu = torch.device("cpu")

    def part(batch_size: int, before: int = 0) -> Shuffled:
        return Shuffled(
            examples,
            batch_size=batch_size,
            bucketing=1,
            seed=5,
            device=cpu,
            steps=40,
            before=before,
        )

    epoch = part(6).epoch
    for first in (1, epoch, 2 * epoch + 1):
        stream = Changed(part(6), part(4, first), steps=first)
        alone = part(6)
        places, expected = [], []
        for _ in range(first + 2 * part(4).epoch + 1):
            places.append(stream.place())
            expected.append(stream.draw().batch)
        assert [len(b.input_ids) for b in expected] == [6] * first + [4] * (len(expected) - first)
        for batch in expected[:first]:
            assert torch.equal(_labels(batch), _labels(alone.draw().batch))
        rate = plan.masking.rate_at(first, 40)
        at_that_share, _ = plan_of("uniform", dynamic=True, rate=rate)
        masker = Masker(at_that_share, config, store[1])
        same = Shuffled(
            Examples(store[0], masker, seed=3), batch_size=4, bucketing=1, seed=5, device=cpu
        )
        assert torch.equal(_labels(expected[first]), _labels(same.draw().batch))
        for number, place in enumerate(places):
            other = Changed(part(6), part(4, first), steps=first)
            other.restore(place)
            for batch in expected[number : number + 3]:
                again = other.draw().batch
                assert torch.equal(again.input_ids, batch.input_ids)
                assert torch.equal(_labels(again), _labels(batch))


def _labels(batch: cm.Batch) -> torch.Tensor:
    assert batch.labels is not None
    return batch.labels


@pytest.mark.parametrize("kind", ["uniform", "whole_word", "ngram", "span", "ordering"])
def test_the_share_that_is_hidden_moves_from_step_to_step(
    store: tuple[TokenStore, Tokenizer], kind: str
) -> None:
    """Each batch is what a masker of that share alone would have made."""
    plan, config = plan_of(kind, dynamic=True, rate=0.6, last_rate=0.2)
    steps = 5
    asked = []
    for number in range(steps):
        stream = Shuffled(
            Examples(store[0], Masker(plan, config, store[1]), seed=3),
            batch_size=4,
            bucketing=1,
            seed=5,
            device=torch.device("cpu"),
            steps=steps,
        )
        place = stream.place()
        stream.restore(replace(place, batch=number % 3, epoch=0))
        rate = plan.masking.rate_at(number % 3, steps)
        alone, _ = plan_of(kind, dynamic=True, rate=rate)
        other = Shuffled(
            Examples(store[0], Masker(alone, config, store[1]), seed=3),
            batch_size=4,
            bucketing=1,
            seed=5,
            device=torch.device("cpu"),
        )
        other.restore(replace(place, batch=number % 3, epoch=0))
        mine, theirs = stream.draw().batch, other.draw().batch
        name = "target_labels" if kind == "ordering" else "labels"
        assert torch.equal(getattr(mine, name), getattr(theirs, name))
        asked.append(rate)
    assert asked[:3] == pytest.approx([0.6, 0.5, 0.4])
    assert plan.masking.rate_at(4, steps) == plan.masking.rate_at(9, steps) == pytest.approx(0.2)


def test_held_out_text_is_measured_with_the_last_share(
    store: tuple[TokenStore, Tokenizer],
) -> None:
    falling, config = plan_of("uniform", dynamic=True, rate=0.6, last_rate=0.2)
    constant, _ = plan_of("uniform", dynamic=True, rate=0.2)
    batches = [
        Examples(store[0], Masker(plan, config, store[1]), seed=3).masked(
            torch.arange(6), torch.Generator().manual_seed(1)
        )
        for plan in (falling, constant)
    ]
    assert torch.equal(batches[0].labels, batches[1].labels)  # type: ignore[arg-type]


def test_validation_looks_at_all_of_a_split_that_is_larger_than_it_may_measure(
    store: tuple[TokenStore, Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Singles stand before pairs: the first examples alone would never ask the pairs' head."""
    plan, config = plan_of("uniform", dynamic=True, rate=0.2)
    examples = Examples(store[0], Masker(plan, config, store[1]), seed=3)
    for most in (4, 10**6):
        monkeypatch.setattr("core_models.training.validation._EXAMPLES", most)
        measured = [drawn.batch for drawn in Validation(examples, batch_size=3)]
        few = min(most, len(examples))
        chosen = torch.arange(few) * len(examples) // few
        assert sum(len(batch.input_ids) for batch in measured) == few
        assert chosen[-1] >= len(examples) - len(examples) // few - 1
        generator = torch.Generator().manual_seed(20181011)
        wanted = [examples.masked(part, generator) for part in chosen.split(3)]
        for one, other in zip(measured, wanted, strict=True):
            assert torch.equal(one.input_ids, other.input_ids)  # type: ignore[arg-type]


def test_a_share_that_changes_needs_a_fresh_draw_each_time() -> None:
    with pytest.raises(InputError, match=r"masking\.dynamic to true"):
        plan_of("uniform", dynamic=False, rate=0.6, last_rate=0.2)
