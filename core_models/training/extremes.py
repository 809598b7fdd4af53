"""The held-out examples that a model finds hardest and easiest, noted while it is validated.

Hooks on the heads hear what the validation pass says anyway: nothing is computed twice, nothing is
drawn, and no training step knows of it. Everything stays on the device until the pass is over.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.objectives import (
    Causal,
    Distillation,
    MaskedNextToken,
    MaskedToken,
    Objective,
    Permutation,
    ReplacedToken,
    Weighted,
)
from core_models.objectives.base import IGNORED, original_ids, real_tokens
from core_models.objectives.replacing import replace_pieces
from core_models.tokenizer import Tokenizer

KEPT = 5
"""Examples of either kind."""
FEWEST = 3
"""Questions below which an example is left out, where others have as many: one easy word in a
short text would always be the easiest example of all."""
FEWEST_OF_ALL = 12
"""The same where every token of an example is asked for."""
MOST_QUESTIONS = 40
"""Of one example that are told; of more, the hardest ones."""
MOST_OF_ALL = 12
"""The same where every token is asked for a piece."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What one batch [B, L] asked in N questions, and what the model said."""

    original: Tensor
    """Piece ids [B, L] before any masking."""
    shown: Tensor
    """Piece ids [B, L] as the model read them."""
    real: Tensor
    """Bool [B, L], False on padding."""
    rows: Tensor
    """Example of each question [N]."""
    places: Tensor
    """Position of each question [N]."""
    losses: Tensor
    """Nats [N]."""
    said: Tensor
    """Piece that the model holds for likeliest, or whether it holds the token for replaced [N]."""
    chances: Tensor
    """Its probability; of being replaced [N]."""
    backwards: Tensor | None = None
    """Bool [B], True = the text runs backwards."""

    def cpu(self) -> Self:
        """The same on the host."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: v.cpu() for k, v in values.items() if isinstance(v, Tensor)})


class Listener:
    """Hears the heads of one objective; a subclass for each that asks of tokens."""

    kind: ClassVar[str]

    def __init__(self, heads: dict[str, nn.Module]) -> None:
        """Heads by any name."""
        self._heads = heads
        self._heard: dict[str, Tensor] = {}

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear every pass in this block."""
        handles = [
            head.register_forward_hook(self._hook(name)) for name, head in self._heads.items()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        def hear(module: nn.Module, given: Any, output: Tensor) -> None:
            del module, given
            self._heard[name] = output.detach().float()

        return hear

    def answers(self, batch: Batch) -> Answers:
        """What the pass over this batch asked and heard."""
        raise NotImplementedError

    def _pieces(
        self, batch: Batch, rows: Tensor, places: Tensor, right: Tensor, shown: Tensor
    ) -> Answers:
        """Questions for a piece, from the logits [N, V] of the only head."""
        (logits,) = self._heard.values()
        chances, said = logits.softmax(-1).max(-1)
        return Answers(
            original=original_ids(batch),
            shown=shown,
            real=real_tokens(batch),
            rows=rows,
            places=places,
            losses=functional.cross_entropy(logits, right, reduction="none"),
            said=said,
            chances=chances,
            backwards=batch.reversed,
        )


class _Masked(Listener):
    kind = "masked_token"

    def answers(self, batch: Batch) -> Answers:
        assert batch.labels is not None
        assert batch.input_ids is not None
        selected = batch.labels != IGNORED
        rows, places = selected.nonzero(as_tuple=True)
        return self._pieces(batch, rows, places, batch.labels[selected], batch.input_ids)


class _Imitated(_Masked):
    """A student answers at every real token; those that are labelled are looked at."""

    def answers(self, batch: Batch) -> Answers:
        assert batch.labels is not None
        (name,) = self._heard
        self._heard[name] = self._heard[name][(batch.labels != IGNORED)[real_tokens(batch)]]
        return super().answers(batch)


class _Shifted(Listener):
    """Hidden pieces are told from the position before, as all pieces of some rows are."""

    kind = "masked_token"

    def answers(self, batch: Batch) -> Answers:
        assert batch.labels is not None
        assert batch.input_ids is not None
        asked = (batch.labels[:, 1:] != IGNORED) & real_tokens(batch)[:, :-1]
        rows, places = asked.nonzero(as_tuple=True)
        return self._pieces(batch, rows, places + 1, batch.labels[:, 1:][asked], batch.input_ids)


class _Ordered(Listener):
    kind = "permutation"

    def answers(self, batch: Batch) -> Answers:
        assert batch.targets is not None
        assert batch.target_labels is not None
        assert batch.input_ids is not None
        selected = batch.target_labels != IGNORED  # [B, M]
        rows = selected.nonzero(as_tuple=True)[0]
        right, places = batch.target_labels[selected], batch.targets[selected]
        return self._pieces(batch, rows, places, right, batch.input_ids)


class _Next(Listener):
    kind = "causal"

    def answers(self, batch: Batch) -> Answers:
        ids, real = original_ids(batch), real_tokens(batch)
        selected = real[:, 1:] & real[:, :-1]
        rows, places = selected.nonzero(as_tuple=True)
        return self._pieces(batch, rows, places + 1, ids[:, 1:][selected], ids)


class _Replaced(Listener):
    kind = "replaced_token"

    def __init__(self, objective: ReplacedToken) -> None:
        super().__init__({"generator": objective.filling.head, "verdict": objective.head})
        self._temperature = objective.temperature

    def answers(self, batch: Batch) -> Answers:
        # The draws are in the batch, so this is what the discriminator read.
        corrupted = replace_pieces(batch, self._heard["generator"], self._temperature)
        assert corrupted.batch.input_ids is not None
        real = real_tokens(batch)
        rows, places = real.nonzero(as_tuple=True)
        scores = self._heard["verdict"][real]
        fake = corrupted.replaced[real].float()
        return Answers(
            original=original_ids(batch),
            shown=corrupted.batch.input_ids,
            real=real,
            rows=rows,
            places=places,
            losses=functional.binary_cross_entropy_with_logits(scores, fake, reduction="none"),
            said=(scores > 0).long(),
            chances=scores.sigmoid(),
        )


def _listener(objective: Objective) -> Listener | None:
    """For an objective that asks of single tokens; None for the others."""
    if isinstance(objective, Weighted):
        parts = [part for part in objective.objectives.values() if isinstance(part, Objective)]
        return next((found for part in parts if (found := _listener(part))), None)
    if isinstance(objective, ReplacedToken):
        return _Replaced(objective)
    if isinstance(objective, Distillation):
        return _Imitated({"head": objective.filling.head})
    if isinstance(objective, MaskedNextToken):
        return _Shifted({"head": objective.head})
    if isinstance(objective, MaskedToken):
        return _Masked({"head": objective.head})
    if isinstance(objective, Permutation):
        return _Ordered({"head": objective.head})
    return _Next({"head": objective.head}) if isinstance(objective, Causal) else None


class Extremes:
    """The hardest and the easiest examples of one validation."""

    def __init__(self, objective: Objective, tokenizer: Tokenizer) -> None:
        """Look at the objective; nothing is heard before :meth:`listening`."""
        self._listener = _listener(objective)
        self._kind = self._listener.kind if self._listener else None
        self._tokenizer = tokenizer
        self._answers: list[Answers] = []

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Begin anew and hear the passes in this block; :meth:`note` follows each of them."""
        self._answers = []
        with self._listener.listening() if self._listener else contextlib.nullcontext():
            yield

    def note(self, batch: Batch) -> None:
        """Keep what the last pass asked of this batch."""
        if self._listener:
            self._answers.append(self._listener.answers(batch))

    def found(self) -> dict[str, Any] | None:
        """Plain values for ``validation.json``; None where the objectives ask of no tokens.

        ``kind`` is the objective; ``worst`` and ``best`` hold examples with their mean ``loss`` in
        nats per question, the number of ``questions``, ``pieces`` (readable text, and whether it
        starts a word) and what was ``asked``: ``place`` among the pieces, ``right`` piece, ``loss``
        and ``chance``. Asked for a piece, the model ``said`` one with that chance; asked whether a
        token was replaced, that is the chance of a yes, and ``shown`` is the piece it judged.
        """
        if self._listener is None:
            return None
        batches = [answers.cpu() for answers in self._answers]
        self._answers = []
        every = self._kind in (_Next.kind, _Replaced.kind)
        ranked = _ranked(batches, FEWEST_OF_ALL if every else FEWEST)
        half = min(KEPT, math.ceil(len(ranked) / 2))
        worst, best = ranked[::-1][:half], ranked[: min(KEPT, len(ranked) - half)]
        return {
            "kind": self._kind,
            "examples": sum(len(answers.original) for answers in batches),
            "worst": [self._example(batches[each.batch], each) for each in worst],
            "best": [self._example(batches[each.batch], each) for each in best],
        }

    def _example(self, answers: Answers, each: "_Place") -> dict[str, Any]:
        words = self._tokenizer
        real = answers.real[each.row].nonzero().squeeze(1)
        first, last = int(real[0]), int(real[-1])
        ids = answers.original[each.row, first : last + 1].tolist()
        backwards = answers.backwards is not None and bool(answers.backwards[each.row])
        mine = (answers.rows == each.row).nonzero().squeeze(1)
        hard = mine[answers.losses[mine].argsort(descending=True, stable=True)].tolist()
        asked = [self._question(answers, each.row, number) for number in hard]
        most = MOST_OF_ALL if self._kind == _Next.kind else MOST_QUESTIONS
        if self._kind == _Replaced.kind:
            asked = [each for each in asked if each["replaced"] or each["wrong"]]
        for question in asked:
            place = question["place"] - first
            question["place"] = len(ids) - 1 - place if backwards else place
        ids = ids[::-1] if backwards else ids
        return {
            "loss": each.loss,
            "questions": each.questions,
            "pieces": [[words.display(i), words.starts_word(i)] for i in ids],
            "asked": sorted(asked[:most], key=lambda question: question["place"]),
        }

    def _question(self, answers: Answers, row: int, number: int) -> dict[str, Any]:
        words = self._tokenizer
        place, said = int(answers.places[number]), int(answers.said[number])
        right, shown = int(answers.original[row, place]), int(answers.shown[row, place])
        common = {
            "place": place,
            "right": words.display(right),
            "shown": words.display(shown),
            "loss": round(float(answers.losses[number]), 4),
            "chance": round(float(answers.chances[number]), 5),
        }
        if self._kind == _Replaced.kind:
            fake = shown != right
            return common | {"replaced": fake, "wrong": fake != bool(said)}
        return common | {"said": words.display(said), "wrong": said != right}


@dataclass(frozen=True)
class _Place:
    loss: float
    questions: int
    batch: int
    row: int


def _ranked(batches: list[Answers], fewest: int) -> list[_Place]:
    """The examples that were asked enough, the easiest first; else all that were asked."""
    found = []
    for number, answers in enumerate(batches):
        sums = torch.zeros(len(answers.original), dtype=torch.float64)
        sums.index_add_(0, answers.rows, answers.losses.double())
        counts = torch.bincount(answers.rows, minlength=len(sums))
        for row, (total, count) in enumerate(zip(sums.tolist(), counts.tolist(), strict=True)):
            if count and math.isfinite(total):
                found.append(_Place(round(total / count, 4), count, number, row))
    enough = [each for each in found if each.questions >= fewest]
    return sorted(enough if len(enough) > 1 else found, key=lambda each: each.loss)
