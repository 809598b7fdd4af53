"""Several objectives over one shared forward pass."""

from collections.abc import Sequence

from torch import Tensor, nn

from core_models.batch import Batch
from core_models.encoder import Encoder, EncoderOutput
from core_models.objectives.base import Losses, Objective
from core_models.trace import Trace


class Weighted(nn.Module):
    """A weighted list of objectives; the encoder runs once for all of them."""

    name = "weighted"

    def __init__(self, objectives: Sequence[tuple[float, Objective]]) -> None:
        """Own the objectives; their names must differ."""
        super().__init__()
        names = [objective.name for _, objective in objectives]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"Weighted needs objectives with different names, got {names}")
        self.weights = {objective.name: weight for weight, objective in objectives}
        self.objectives = nn.ModuleDict(
            {o.name: o for _, o in objectives if isinstance(o, nn.Module)}
        )

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labels of each objective."""
        found: dict[str, Tensor] = {}
        for objective in self.objectives.values():
            found |= objective.counts(batch)  # type: ignore[operator]
        return found

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses of all objectives, with their weights."""
        if output is None:
            output = encoder(batch, trace)
        results: dict[str, Losses] = {
            name: objective(encoder, batch, output=output)
            for name, objective in self.objectives.items()
        }
        return Losses(
            sums={key: value for r in results.values() for key, value in r.sums.items()},
            counts={key: value for r in results.values() for key, value in r.counts.items()},
            weights={
                key: self.weights[name] * value
                for name, r in results.items()
                for key, value in r.weights.items()
            },
            metrics={key: value for r in results.values() for key, value in r.metrics.items()},
        )
