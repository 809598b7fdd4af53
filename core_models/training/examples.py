"""Packed examples and their masking: what a training step reads."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core_models.batch import Batch
from core_models.config import Config
from core_models.data import permutation
from core_models.data.layout import TokenBatch
from core_models.data.similar import Similar, similar_words
from core_models.data.store import TokenStore
from core_models.heads.pretraining import SpanBoundaryHead
from core_models.masking import spans as span_masking
from core_models.masking import tokens as masking
from core_models.masking.diffusion import diffused
from core_models.masking.electra import with_replacement
from core_models.masking.orderings import Ordering
from core_models.objectives import read_leftward
from core_models.tokenizer import Tokenizer
from core_models.training.plan import Plan

ON_DEVICE = frozenset({"uniform", "diffusion"})
"""Maskings without a loop over rows: these are drawn where the model is."""


class Masker:
    """A run's masking: packed examples in, the model's input with what it has to guess out."""

    def __init__(
        self, plan: Plan, config: Config, tokenizer: Tokenizer, similar: Similar | None = None
    ) -> None:
        """Note what the masking needs.

        Args:
            plan: The run's masking and objectives.
            config: The model: of one whose segment table has one row, segments are left out.
            tokenizer: Gives the mask piece and the size of the vocabulary.
            similar: Similar words; only for masking by them.
        """
        self.plan = plan
        self._mask_id, self._vocabulary = tokenizer.mask_id, tokenizer.vocabulary
        self._one_segment = config.embeddings.segments == 1
        self._similar = similar
        special = {*tokenizer.special_ids, tokenizer.mask_id, tokenizer.unknown_id}
        self._ordinary = masking.ordinary_ids(tokenizer.vocabulary, special)

    @property
    def on_device(self) -> bool:
        """Whether the draw may be made on the model's device: it then never waits for the host."""
        options = self.plan.masking
        return self.plan.masks and options.dynamic and options.kind in ON_DEVICE

    def __call__(
        self, raw: TokenBatch, sources: masking.Generators, *, rate: float | None = None
    ) -> Batch:
        """A padded batch [B, L] with everything that the objectives ask for.

        Args:
            raw: Packed examples.
            sources: One generator for the batch, or one per row.
            rate: Share that is predicted; None = the plan's last one, as held-out text is measured.
        """
        rate = self.plan.masking.last_rate if rate is None else rate
        objectives = self.plan.objectives
        if not self.plan.masks:
            batch = raw.masked(self._untouched(raw))
        elif "permutation" in objectives:
            batch = raw.permuted(self._ordering(raw, sources, rate))
        else:
            hidden = self._hidden(raw, sources, rate)
            draws = None
            if "replaced_token" in objectives:
                rows, length = raw.input_ids.shape
                draws = masking.sample_draws(rows, length, sources).to(raw.input_ids.device)
            places = SpanBoundaryHead.places if "span_boundary" in objectives else None
            batch = raw.masked(hidden, boundaries=places, draws=draws)
        if (leftward := self.plan.masking.leftward) is not None:
            batch = read_leftward(batch, leftward, sources)
        return replace(batch, segment_ids=None) if self._one_segment else batch

    def _untouched(self, raw: TokenBatch) -> masking.Masked:
        nothing = torch.full_like(raw.input_ids, masking.IGNORED)
        return masking.Masked(raw.input_ids, nothing, torch.zeros_like(nothing, dtype=torch.uint8))

    def _ordering(self, raw: TokenBatch, sources: masking.Generators, rate: float) -> Ordering:
        if self.plan.masking.ordering == "paper":
            return permutation.paper_ordering(raw, generator=sources, predict=rate)
        return permutation.released_ordering(raw, generator=sources, predict=rate)

    def _hidden(self, raw: TokenBatch, sources: masking.Generators, rate: float) -> masking.Masked:
        options = self.plan.masking
        if options.kind == "diffusion":
            return diffused(raw.input_ids, raw.maskable, generator=sources, mask_id=self._mask_id)
        common: dict[str, Any] = {
            "generator": sources,
            "vocabulary": self._vocabulary,
            "rate": rate,
            "split": options.split,
        }
        ids, maskable, words = raw.input_ids, raw.maskable, raw.words
        if options.kind == "span":
            shares = span_masking.geometric(longest=options.longest)
            return span_masking.spans(
                ids, maskable, words, mask_id=self._mask_id, shares=shares, **common
            )
        common["lengths"] = raw.lengths
        if options.kind == "similar_word":
            assert self._similar is not None
            weights = span_masking.MACBERT_WEIGHTS[: options.longest]
            return similar_words(
                ids, maskable, words, table=self._similar, weights=weights, **common
            )
        common["mask_id"] = self._mask_id
        if options.kind == "with_replacement":
            kept = options.split[2]
            del common["split"], common["vocabulary"]
            return with_replacement(ids, maskable, kept=kept, **common)
        if options.kind in ("ngram", "windowed_ngram"):
            weights = tuple(1 / n for n in range(1, options.longest + 1))
            choose = span_masking.ngrams
            if options.kind == "windowed_ngram":
                choose = span_masking.windowed_ngrams
            return choose(ids, maskable, words, weights=weights, **common)
        if options.counting == "fairseq":
            common |= {"counting": "fairseq", "random_ids": self._ordinary.to(ids.device)}
        if options.kind == "whole_word":
            return masking.whole_word(ids, maskable, words, **common)
        if options.counting == "fairseq":
            maskable = raw.attention_mask
        return masking.uniform(ids, maskable, **common)


class Examples:
    """One split of a token store together with the run's masking."""

    def __init__(self, store: TokenStore, masker: Masker, seed: int) -> None:
        """Look at a store; nothing is read yet."""
        self.store = store
        self.masker = masker
        self._seed = seed

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.store)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each example [N], [CLS] and [SEP] included."""
        return self.store.lengths

    def masked(
        self,
        indices: Tensor,
        generator: torch.Generator,
        device: torch.device | str = "cpu",
        *,
        rate: float | None = None,
    ) -> Batch:
        """A padded batch [B, L] with hidden tokens and labels.

        Args:
            indices: Which examples, [B].
            generator: Source of the draw where masking is dynamic. Static masking draws from
                seed and index alone, so that an example is hidden the same way at each visit.
            device: Where the draw is made and the batch lies.
            rate: Share that is predicted; None = the plan's last one.
        """
        raw = self.store.batch(indices)
        if torch.device(device).type != "cpu":
            raw = raw.to(device, non_blocking=True)
        return self.masker(raw, self.sources(indices.tolist(), generator), rate=rate)

    def sources(self, numbers: list[int], generator: torch.Generator) -> masking.Generators:
        """The generator of the run, or one for each example where masking is static."""
        if self.masker.plan.masking.dynamic:
            return generator
        return [masking.generator_for(self._seed, number) for number in numbers]


def rows(batch: Batch, chosen: Tensor) -> Batch:
    """Some rows of a batch."""
    values: dict[str, Any] = {
        f.name: value[chosen]
        for f in fields(batch)
        if isinstance(value := getattr(batch, f.name), Tensor)
    }
    return replace(batch, **values, memory=tuple(part[chosen] for part in batch.memory))
