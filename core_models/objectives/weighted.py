"""Several objectives over one shared forward pass."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from core_models.batch import Batch
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import Losses, Objective

if TYPE_CHECKING:
    from core_models.model import Model


class Weighted(Objective):
    """A weighted list of objectives.

    The encoder runs once for all of them but those that need a pass of their own, and not at all
    where there are only such.
    """

    name = "weighted"

    def __init__(self, objectives: Sequence[tuple[float, Objective]]) -> None:
        """Own the objectives; their names, and the names of their losses, must differ."""
        super().__init__()
        names = [objective.name for _, objective in objectives]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"Weighted needs objectives with different names, got {names}")
        losses = Counter(part for _, objective in objectives for part in objective.loss_weights())
        twice = [part for part, times in losses.items() if times > 1]
        if twice:
            raise ValueError(f"more than one of {names} has a loss {twice[0]!r}")
        self.weights = {objective.name: weight for weight, objective in objectives}
        self.objectives = nn.ModuleDict({o.name: o for _, o in objectives})

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labels of each part."""
        found: dict[str, Tensor] = {}
        for _, objective in self._each():
            found |= objective.counts(batch)
        return found

    def loss_weights(self) -> dict[str, float]:
        """The weights inside each objective times its own."""
        return {
            part: weight * inner
            for weight, objective in self._each()
            for part, inner in objective.loss_weights().items()
        }

    def companions(self) -> dict[str, "Model"]:
        """Those of every objective."""
        return {name: m for _, o in self._each() for name, m in o.companions().items()}

    def own_state(self) -> dict[str, Tensor]:
        """Those of every objective under ``<objective>.<tensor>``."""
        return {
            f"{objective.name}.{key}": tensor
            for _, objective in self._each()
            for key, tensor in objective.own_state().items()
        }

    def reads(self, encoder: Encoder, batch: Batch) -> Tensor | None:
        """What any of those reads that share the pass."""
        read = None
        for _, objective in self._each():
            if objective.own_pass:
                continue
            own = objective.reads(encoder, batch)
            if own is None:
                return None
            read = own if read is None else read | own
        return read

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses of all objectives, with their weights."""
        if output is None and any(not objective.own_pass for _, objective in self._each()):
            output = self.run(encoder, batch, trace)
        return Losses.merge(
            [
                (
                    weight,
                    objective(encoder, batch, trace)
                    if objective.own_pass
                    else objective(encoder, batch, output=output),
                )
                for weight, objective in self._each()
            ]
        )

    def _each(self) -> list[tuple[float, Objective]]:
        return [
            (self.weights[name], objective)
            for name, objective in self.objectives.items()
            if isinstance(objective, Objective)
        ]
