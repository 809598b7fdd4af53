"""Replaced-token objective: generator and discriminator together (arXiv 2003.10555, section 3)."""

from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn import functional

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.joint import share
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import Losses, Objective, real_tokens
from core_models.objectives.masked_token import MaskedToken
from core_models.objectives.replacing import Corrupted, replace_pieces

if TYPE_CHECKING:
    from core_models.model import Model


class ReplacedToken(Objective):
    """Which tokens did the generator put in?

    The generator is trained to fill the masked tokens by maximum likelihood. A piece is sampled
    from its answer at each of them, without gradient, and the discriminator tells for every real
    token whether it is the original one; a sample that happens to be the original counts as such.

    Beside loss and accuracy the metrics hold ``replaced_token_share`` (replaced of all tokens),
    ``replaced_token_found`` (recall of the replaced ones) and ``replaced_token_lucky`` (samples
    that hit the original).
    """

    name = "replaced_token"
    own_pass = True

    def __init__(
        self,
        model: "Model",
        generator: "Model",
        *,
        sharing: str = "tied",
        temperature: float = 1.0,
        weight: float = 50.0,
    ) -> None:
        """Own both models' heads and the generator, and let them share their embedding block.

        Args:
            model: the discriminator, with the head ``replaced_token``; changed in place, as is the
                generator (see :func:`core_models.joint.share`).
            generator: with the head ``masked_token``.
            sharing: one of ``joint.SHARINGS``.
            temperature: of the distribution that pieces are sampled from, above 0.
            weight: of the discriminator's loss beside the generator's.

        Raises:
            InputError: a value is not allowed, or the models do not fit together.
        """
        super().__init__()
        if not temperature > 0:
            raise InputError(f"The sampling temperature is {temperature}; it must be above 0.")
        if "masked_token" not in generator.heads:
            raise InputError("A generator needs the head 'masked_token'.")
        self.tables = share(generator, model, sharing)
        self.temperature, self.weight = temperature, weight
        self.head = model.heads["replaced_token"]
        self.generator = generator
        self.filling = MaskedToken(generator.heads["masked_token"])

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Masked positions of the generator, real tokens of the discriminator."""
        return self.filling.counts(batch) | {self.name: real_tokens(batch).sum().float()}

    def loss_weights(self) -> dict[str, float]:
        """1 for the generator, ``weight`` for the discriminator."""
        return {self.filling.name: 1.0, self.name: self.weight}

    def companions(self) -> dict[str, "Model"]:
        """The generator."""
        return {"generator": self.generator}

    def own_state(self) -> dict[str, Tensor]:
        """E_delta of each disentangled table, which the saved sum gives only up to rounding."""
        return {name: table.delta.detach() for name, table in self.tables.items()}

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over ``batch.labels`` and over every real token; needs ``batch.draws``.

        ``encoder`` is the discriminator's and ``trace`` listens to it. A given ``output`` is not
        used, as only here is it known what the discriminator reads.
        """
        logits = self.filling.scores(self.generator.encoder, batch)  # [N, V]
        filled = self.filling.losses(batch, logits)
        corrupted = replace_pieces(batch, logits, self.temperature)
        hidden = encoder(corrupted.batch, trace).hidden
        judged = judge(self.head(hidden).float(), corrupted)
        return Losses.merge([(1.0, filled), (self.weight, judged)])


def judge(scores: Tensor, corrupted: Corrupted) -> Losses:
    """Losses of a discriminator's scores [B, L], over every real token."""
    real = real_tokens(corrupted.batch)
    fake = corrupted.replaced & real
    total = functional.binary_cross_entropy_with_logits(
        scores[real], fake[real].float(), reduction="sum"
    )
    count = real.sum().float()
    said = scores.detach() > 0
    losses = Losses.of_one(ReplacedToken.name, total, count, ((said == fake) & real).sum().float())
    asked = corrupted.samples >= 0
    fakes, hits = fake.sum().float(), (asked & ~corrupted.replaced).sum().float()
    losses.metrics.update(
        {
            "replaced_token_share": (fakes, count),
            "replaced_token_found": ((said & fake).sum().float(), fakes),
            "replaced_token_lucky": (hits, asked.sum().float()),
        }
    )
    return losses
