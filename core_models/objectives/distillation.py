"""Distillation of a shallower model (DistilBERT: Sanh et al. 2019, arXiv 1910.01108)."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.nn import functional

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import Losses, Objective, real_tokens
from core_models.objectives.masked_token import MaskedToken, labelled

if TYPE_CHECKING:
    from core_models.model import Model


class Distillation(Objective):
    """Imitate a teacher's answers and hidden states while filling masked tokens (section 2).

    Three losses, weighted 5, 2 and 1 in the released code; the paper gives no weights:

    * ``distillation``: T^2 KL(teacher || student) of the answers at temperature T. The paper writes
      a cross-entropy, which differs by the teacher's entropy and has the same gradient, and leaves
      the factor T^2 out. In the released code every real token counts, not only the masked ones.
    * ``masked_token``: as ever, over the labels.
    * ``hidden_cosine``: 1 - cosine of the last hidden states, over every real token.

    The mean of each is over its own tokens, as in the released code. ``distillation_accuracy`` is
    how often the student's first answer is the teacher's.
    """

    name = "distillation"

    def __init__(
        self,
        model: "Model",
        teacher: "Model",
        *,
        temperature: float = 2.0,
        weights: tuple[float, float, float] = (5.0, 2.0, 1.0),
    ) -> None:
        """Own the student's masked-token head and hold the teacher, which is not trained.

        Raises:
            InputError: the teacher has no masked-token head, another vocabulary or another width,
                or a value is out of range.
        """
        super().__init__()
        if not temperature > 0:
            raise InputError(f"The temperature of distillation is {temperature}; it must be > 0.")
        if "masked_token" not in teacher.heads:
            raise InputError("A teacher needs the head 'masked_token'.")
        ours, theirs = model.config, teacher.config
        if ours.embeddings.vocabulary != theirs.embeddings.vocabulary:
            raise InputError(
                f"The teacher has {theirs.embeddings.vocabulary} pieces, the student "
                f"{ours.embeddings.vocabulary}; they must read the same ones."
            )
        if ours.width != theirs.width and weights[2]:
            raise InputError(
                f"The teacher's width is {theirs.width}, the student's {ours.width}; hidden states "
                "can be compared at equal width only, else set their weight to 0."
            )
        self.temperature, self.weights = temperature, weights
        self.filling = MaskedToken(model.heads["masked_token"])
        # In a tuple, so that its weights are neither trained nor saved and dropout stays off.
        self._teacher = (teacher.eval(),)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self._teacher[0]._apply(fn, recurse)  # type: ignore[no-untyped-call]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Real tokens for the teacher's part, labelled ones for masked tokens."""
        real = real_tokens(batch).sum().float()
        found = {self.name: real} | self.filling.counts(batch) | {"hidden_cosine": real}
        return {name: found[name] for name in self.loss_weights()}

    def loss_weights(self) -> dict[str, float]:
        """Of soft targets, masked tokens and, unless their weight is 0, hidden states."""
        names = (self.name, self.filling.name, "hidden_cosine")
        found = dict(zip(names, self.weights, strict=True))
        if not found["hidden_cosine"]:
            del found["hidden_cosine"]
        return found

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses against the teacher's pass over the same batch, and over ``batch.labels``."""
        if output is None:
            output = encoder(batch, trace)
        real = real_tokens(batch)
        scores = self.filling.head(encoder.decode(batch, output, trace)[real]).float()  # [N, V]
        teacher = self._teacher[0]
        with torch.no_grad():
            told = teacher.encoder(batch)
            wanted = teacher.heads["masked_token"](teacher.encoder.decode(batch, told)[real])
        results = [
            (self.weights[0], self._imitate(scores, wanted.float())),
            (self.weights[1], self.filling.losses(batch, scores[labelled(batch)[real]])),
        ]
        if self.weights[2]:
            results.append((self.weights[2], _compare(output.hidden[real], told.hidden[real])))
        return Losses.merge(results)

    def _imitate(self, scores: Tensor, wanted: Tensor) -> Losses:
        """Losses of the student's scores against the teacher's, both [N, V]."""
        heat = self.temperature
        total = heat**2 * functional.kl_div(
            (scores / heat).log_softmax(-1),
            (wanted / heat).log_softmax(-1),
            reduction="sum",
            log_target=True,
        )
        count = scores.new_tensor(float(scores.shape[0]))
        agreed = (scores.detach().argmax(-1) == wanted.argmax(-1)).sum().float()
        return Losses.of_one(self.name, total, count, agreed)


def _compare(student: Tensor, teacher: Tensor) -> Losses:
    """Losses of the angles between hidden states [N, D]."""
    name = "hidden_cosine"
    cosine = functional.cosine_similarity(student.float(), teacher.float(), dim=-1)
    total, count = (1 - cosine).sum(), cosine.new_tensor(float(cosine.shape[0]))
    return Losses(
        sums={name: total},
        counts={name: count},
        weights={name: 1.0},
        metrics={f"{name}_loss": (total.detach(), count)},
    )


def shallower(model: "Model", steps: int) -> "Model":
    """A student with every k-th layer of a model, and everything else of it.

    The layers are spread evenly from the first to the last: 0, 2, 4, 7, 9, 11 of 12 for 6, as in
    the released code (the paper, section 3: "one layer out of two"). A model whose steps share one
    block keeps the block.

    Raises:
        InputError: not fewer steps than the model has, or less than 1.
    """
    config = model.config
    if not 1 <= steps < config.steps:
        raise InputError(f"A student of {steps} steps was asked for; 1 to {config.steps - 1} fit.")
    last = config.steps - 1
    kept = [int(i * last / max(1, steps - 1) + 0.5) for i in range(steps)]
    blocks = [config.schedule[step] for step in kept]
    old = list(dict.fromkeys(blocks))
    student = type(model)(
        replace(
            config,
            schedule=tuple(old.index(block) for block in blocks),
            layer_kinds=tuple(config.kinds[step] for step in kept),
        ),
        model.tokenizer,
        model.heads.keys(),
    )
    stem = "encoder.blocks."
    state = {k: v for k, v in model.state_dict().items() if not k.startswith(stem)}
    for new, block in enumerate(old):
        own = model.encoder.blocks[block].state_dict()
        state |= {f"{stem}{new}.{name}": tensor for name, tensor in own.items()}
    student.load_state_dict(state)
    return student.to(model.encoder.embeddings.pieces.weight.device).eval()
