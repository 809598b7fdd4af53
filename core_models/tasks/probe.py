"""Linear probes: what a frozen encoder's states already tell.

A logistic regression over vectors of one layer (arXiv 1610.01644). For comparing pretraining
objectives it is quicker and less noisy than fine-tuning, and answers another question: what is
there, not what can be learnt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.model import Model
from core_models.network.trace import Trace
from core_models.tasks.encode import Coder, Feature
from core_models.tasks.report import Said, main_metric, measure
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet

POOLINGS = ("mean", "first")
Vectors = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What a probe reached on the development rows."""

    layer: int
    """0 = embeddings, n = after step n."""
    pooling: str
    """``mean`` of all tokens, ``first`` = [CLS], or ``token`` for tags."""
    main: str
    metrics: dict[str, float]


@torch.no_grad()
def probe(
    model: Model,
    task: TaskSet,
    *,
    layer: int | None = None,
    pooling: str = "mean",
    strength: float = 1.0,
    max_length: int = 128,
    batch_size: int = 32,
) -> Probed:
    """Fit a linear model on vectors of the training rows and measure it.

    Args:
        model: stays as it is; evaluation mode.
        task: of any kind but ``answer`` and ``multilabel``.
        layer: 0 = embeddings, n = after step n; None = the last.
        pooling: ``mean`` of the tokens or ``first``, the state of [CLS]; tags always read the
            first piece of each word.
        strength: of the L2 penalty, above 0.
        max_length: longest input in pieces.
        batch_size: rows in one forward pass.

    Raises:
        InputError: the kind or the layer cannot be probed, or a value is not allowed.
    """
    steps = model.config.steps
    layer = steps if layer is None else layer
    if not 0 <= layer <= steps:
        raise InputError(f"Layer {layer} does not exist; this model has 0 (embeddings) to {steps}.")
    if pooling not in POOLINGS:
        raise InputError(f"pooling is {pooling!r}; allowed are {', '.join(POOLINGS)}.")
    if not strength > 0:
        raise InputError(f"strength is {strength}; it must be above 0.")
    if task.kind in ("answer", "multilabel"):
        what = {"answer": "Answers in a text", "multilabel": "Several labels at once"}[task.kind]
        raise InputError(f"{what} are no matter for a linear probe; take another set.")
    if model.training:
        raise InputError("The model is in training mode, where dropout is on; call model.eval().")
    apart = task.kind == "regress" and all(row.pair is not None for row in task.train)
    coder = Coder.of(model, task, max_length=max_length, apart=apart)
    reader = _Reader(coder, layer, "token" if task.kind == "tag" else pooling, batch_size)
    if task.kind == "tag":
        said = _tags(reader, task, strength)
    elif task.kind == "regress":
        said = _scores(reader, task, strength)
    else:
        labels = [str(row.label) for row in task.train]
        fitted = _logistic(strength).fit(np.stack(reader.rows(task.train)), labels)
        said = [str(label) for label in fitted.predict(np.stack(reader.rows(task.dev)))]
    return Probed(
        layer=layer,
        pooling=reader.pooling,
        main=main_metric(task),
        metrics=measure(task, task.dev, said),
    )


def _logistic(strength: float) -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(C=1 / strength, max_iter=500))


def _scores(reader: "_Reader", task: TaskSet, strength: float) -> list[Said]:
    """For pairs over ``|u - v|`` and ``u * v`` of the two vectors (arXiv 1503.00075)."""
    fitted = make_pipeline(StandardScaler(), Ridge(alpha=100 * strength))
    fitted.fit(np.stack(reader.rows(task.train)), [row.score for row in task.train])
    return [float(score) for score in fitted.predict(np.stack(reader.rows(task.dev)))]


def _tags(reader: "_Reader", task: TaskSet, strength: float) -> list[Said]:
    known = reader.tokens(task.train)
    tags = [row.tags[word] for row, found in zip(task.train, known, strict=True) for word in found]
    fitted = _logistic(strength).fit(np.stack([v for f in known for v in f.values()]), tags)
    said: list[Said] = []
    for row, found in zip(task.dev, reader.tokens(task.dev), strict=True):
        tags = [task.labels[0]] * len(row.tokens)
        if found:
            for word, tag in zip(found, fitted.predict(np.stack([*found.values()])), strict=True):
                tags[word] = str(tag)
        said.append(tuple(tags))
    return said


class _Reader:
    """Vectors of one layer."""

    def __init__(self, coder: Coder, layer: int, pooling: str, batch_size: int) -> None:
        self.coder, self.layer, self.pooling, self.batch_size = coder, layer, pooling, batch_size

    def rows(self, rows: Sequence[Row]) -> list[Vectors]:
        """One vector [D] for each row, or [2 D] for two texts that are encoded apart."""
        found: list[Vectors] = []
        for _, batch in self._batches(rows):
            first = self._pooled(batch)
            if batch.second is not None:
                second = self._pooled(batch.second)
                first = torch.cat([(first - second).abs(), first * second], -1)
            found.extend(first.float().cpu().numpy())
        return found

    def tokens(self, rows: Sequence[Row]) -> list[dict[int, Vectors]]:
        """For each row its words' vectors [D], where a word has a piece."""
        found: list[dict[int, Vectors]] = [{} for _ in rows]
        for features, batch in self._batches(rows):
            hidden = self._hidden(batch).float().cpu().numpy()
            for states, feature in zip(hidden, features, strict=True):
                shift = self.coder.shift(feature, len(states))
                for place, word in enumerate(feature.words):
                    if word >= 0:
                        found[feature.row][word] = states[shift + place]
        return found

    def _batches(self, rows: Sequence[Row]) -> list[tuple[list[Feature], Batch]]:
        features = self.coder.features(rows)
        parts = range(0, len(features), self.batch_size)
        cut = [features[begin : begin + self.batch_size] for begin in parts]
        return [(part, self.coder.batch(part)) for part in cut]

    def _hidden(self, batch: Batch) -> Tensor:
        """States [B, L, D] of the layer."""
        site, step = ("embedding", None) if self.layer == 0 else ("residual", self.layer - 1)
        trace = Trace([site], steps=None if step is None else [step])
        self.coder.model.encoder(batch, trace)
        return trace.records[site, step, "content"]

    def _pooled(self, batch: Batch) -> Tensor:
        """Vectors [B, D]."""
        hidden = self._hidden(batch)
        if self.pooling == "first":
            return hidden[:, self.coder.cls_column]
        if batch.attention_mask is None:
            return hidden.mean(1)
        kept = batch.attention_mask[..., None]
        return hidden.masked_fill(~kept, 0.0).sum(1) / kept.sum(1)
