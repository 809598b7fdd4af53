"""Packed examples and their masking: what a training step reads."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core_models import masking
from core_models.batch import Batch
from core_models.data.store import TokenStore
from core_models.tokenizer import Tokenizer
from core_models.training.settings import Settings


class Examples:
    """One split of a token store together with the run's masking."""

    def __init__(self, store: TokenStore, tokenizer: Tokenizer, settings: Settings) -> None:
        """Look at a store; nothing is read yet."""
        self._store = store
        self._settings = settings
        self._mask_id, self._vocabulary = tokenizer.mask_id, tokenizer.vocabulary

    def __len__(self) -> int:
        """Number of examples."""
        return len(self._store)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each example [N], [CLS] and [SEP] included."""
        return self._store.lengths

    def masked(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """A padded batch [B, L] with hidden tokens and labels.

        Args:
            indices: Which examples, [B].
            generator: Source of the draw where masking is dynamic. Static masking draws from
                seed and index alone, so that an example is hidden the same way at each visit.
        """
        options = self._settings.masking
        raw = self._store.batch(indices)
        sources: masking.Generators = generator
        if not options.dynamic:
            sources = [masking.generator_for(self._settings.seed, int(index)) for index in indices]
        a, b, c = options.split
        if options.kind == "whole_word":
            hidden = masking.whole_word(
                raw.input_ids,
                raw.maskable,
                raw.words,
                generator=sources,
                mask_id=self._mask_id,
                vocabulary=self._vocabulary,
                lengths=raw.lengths,
                rate=options.rate,
                split=(a, b, c),
            )
        else:
            hidden = masking.uniform(
                raw.input_ids,
                raw.maskable,
                generator=sources,
                mask_id=self._mask_id,
                vocabulary=self._vocabulary,
                lengths=raw.lengths,
                rate=options.rate,
                split=(a, b, c),
            )
        return raw.masked(hidden)


def rows(batch: Batch, chosen: Tensor) -> Batch:
    """Some rows of a batch."""
    values: dict[str, Any] = {
        f.name: value[chosen]
        for f in fields(batch)
        if isinstance(value := getattr(batch, f.name), Tensor)
    }
    return replace(batch, **values)
