"""The encoder: embeddings, then blocks run by a schedule."""

from dataclasses import dataclass, field
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.attention import Source
from core_models.batch import Batch
from core_models.config import Config, check_ours
from core_models.convolution import ConvolutionLayer
from core_models.embeddings import Embeddings, too_long
from core_models.layer import Layer
from core_models.terms import Prepared, build_table
from core_models.trace import Trace


@dataclass(frozen=True)
class EncoderOutput:
    """What a forward pass gives; heads are applied to it outside the encoder."""

    hidden: Tensor
    """Content stream after the last step [B, L, D]; where places were asked for, only there."""
    streams: dict[str, Tensor] = field(default_factory=dict)
    """Other streams by name: ``query`` [B, M, D] where the batch has targets."""
    memory: tuple[Tensor, ...] = ()
    """Inputs of every step for the next segment, detached, each [B, M', D]."""
    last_input: Tensor | None = None
    """Content stream before the last step [B, L, D], from which a mask decoder starts."""
    states: tuple[Tensor, ...] = ()
    """Content stream before every step and after the last, each [B, L, D], where asked for."""


torch.export.register_dataclass(EncoderOutput)


class Encoder(nn.Module):
    """One encoder for every family; :class:`~core_models.config.Config` holds the differences."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        check_ours(config)
        self.config = config
        self.embeddings = Embeddings(config)
        self.table = build_table(config)
        self.blocks = nn.ModuleList(Layer(config) for _ in range(config.blocks))
        self.convolution = (
            ConvolutionLayer(config, config.convolution) if config.convolution else None
        )
        self.mask_decoder = (
            nn.Embedding(config.mask_decoder.positions, config.width)
            if config.mask_decoder
            else None
        )
        self.query_start = nn.Parameter(torch.zeros(config.width)) if config.query_stream else None
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        batch: Batch,
        trace: Trace | None = None,
        *,
        every_step: bool = False,
        places: Tensor | None = None,
    ) -> EncoderOutput:
        """Run the schedule.

        Args:
            batch: inputs [B, L].
            trace: records and edits the inside; None takes the fused path, which compiles as one
                graph.
            every_step: also hand out the content stream before every step.
            places: positions [B, M] whose hidden states will be read, each at most once in a row;
                None = all. The last step, of which nothing else follows, then computes only
                these: with four layers and 15 % of 128 positions 18 % less work.

        Returns:
            The hidden states [B, L, D] and what else the batch asked for. Rows of padding, and of
            positions outside ``places``, hold no meaning.

        Raises:
            ValueError: ``places`` with a trace, which shows every position.
        """
        if places is not None and trace is not None:
            raise ValueError("a trace shows every position: leave places out")
        if trace is not None:
            trace.check(self.config.steps, cast(Layer, self.blocks[0]).attention.terms.names)
        first = hidden = last_input = self.embeddings(
            batch, None if trace is None else trace.at(None)
        )
        prepared, visible = self._prepare(batch)
        query = self._start_query(batch)
        if query is not None:
            prepared_query, visible_query = self._prepare_query(batch, prepared)
        memory: list[Tensor] = []
        states: list[Tensor] = []
        for step, block in enumerate(self.config.schedule):
            layer = cast(Layer, self.blocks[block])
            old = batch.memory[step] if batch.memory else None
            if old is not None and trace is not None:
                old = trace.at(step).offer("memory", old)
            if batch.remember:
                memory.append(_remember(old, hidden, batch))
            if every_step:
                states.append(hidden)
            source = None
            if query is not None:
                if trace is None:  # an edit of one stream must not reach the other
                    source = layer.attention.source(hidden, prepared, old)
                query = layer(
                    hidden,
                    queries=query,
                    visible=visible_query,
                    prepared=prepared_query,
                    memory=old,
                    source=source,
                    sites=None if trace is None else trace.at(step, "query"),
                )
            last_input = hidden
            convolution = self.convolution if step == 0 else None
            if places is not None and step == self.config.steps - 1 and convolution is None:
                hidden = _only(places, layer, hidden, visible, prepared, old, source)
                break
            hidden = layer(
                hidden,
                visible=visible,
                prepared=prepared,
                memory=old,
                source=source,
                sites=None if trace is None else trace.at(step),
            )
            if convolution is not None:
                hidden = convolution(first, hidden, batch.attention_mask)
        streams = {}
        if self.config.output_dropout:
            hidden = self.dropout(hidden)
        if query is not None:
            streams["query"] = self.dropout(query) if self.config.output_dropout else query
        if every_step:
            states.append(hidden)
        return EncoderOutput(hidden, streams, tuple(memory), last_input, tuple(states))

    def decode(
        self,
        batch: Batch,
        output: EncoderOutput,
        trace: Trace | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """The hidden states that masked tokens are predicted from.

        With a mask decoder (DeBERTa) the last layer runs again from its own queries: they start
        as absolute positions plus the input of the last step, while keys and values stay that
        input (arXiv 2006.03654, section 3.2; in the released code keys and values are H[n-1] and
        the shared last layer is applied twice). Without one this is ``output.hidden``.

        Args:
            batch: the batch that ``output`` was made from.
            output: what the forward pass gave.
            trace: listens under the stream ``mask_decoder``.
            targets: positions [B, M] to decode; None = all. A query needs no other query, so
                decoding the masked positions alone gives the same rows for less work.

        Returns:
            [B, L, D], or [B, M, D] for given targets.

        Raises:
            InputError: the input is longer than the decoder's table of positions.
        """
        if self.mask_decoder is None or self.config.mask_decoder is None:
            return output.hidden if targets is None else rows_at(output.hidden, targets)
        assert output.last_input is not None
        if batch.shape[1] > self.mask_decoder.num_embeddings:
            raise too_long(batch.shape[1], self.mask_decoder.num_embeddings)
        start = output.last_input
        queries: Tensor = start
        prepared, visible = self._prepare(batch)
        positions = torch.arange(batch.shape[1], device=batch.device)[None]
        if targets is not None:
            queries, positions = rows_at(queries, targets), targets
            prepared = None if prepared is None else prepared.at(targets)
            visible = _visible_at(visible, targets)
        queries = queries + self.mask_decoder(positions)
        layer = cast(Layer, self.blocks[self.config.schedule[-1]])
        source = None
        if trace is None and not (prepared and prepared.dropout):  # dropped out at every step
            source = layer.attention.source(start, prepared)
        for step in range(self.config.mask_decoder.steps):
            queries = layer(
                start,
                queries=queries,
                visible=visible,
                prepared=prepared,
                source=source,
                sites=None if trace is None else trace.at(step, "mask_decoder"),
            )
        return queries

    def output_weight(self, step: int) -> Tensor:
        """Weight of a step's output projection [D, H * d]."""
        block = cast(Layer, self.blocks[self.config.schedule[step]])
        return block.attention.output.weight

    def _prepare(self, batch: Batch) -> tuple[Prepared | None, Tensor | None]:
        """What the score terms share, and what each token may see."""
        remembered = batch.memory[0].shape[1] if batch.memory else 0
        prepared = None if self.table is None else self.table(batch, remembered)
        visible = content_visibility(batch)
        earlier = self._earlier(batch)
        if earlier is not None:
            visible = earlier if visible is None else visible & earlier
        return prepared, visible

    def _prepare_query(
        self, batch: Batch, prepared: Prepared | None
    ) -> tuple[Prepared | None, Tensor | None]:
        """The same for the query stream."""
        assert batch.targets is not None
        visible = target_visibility(batch)
        earlier = self._earlier(batch)
        if earlier is not None:
            earlier = earlier[batch.targets][:, None]  # [B, 1, M, K]
            visible = earlier if visible is None else visible & earlier
        return None if prepared is None else prepared.at(batch.targets), visible

    def _earlier(self, batch: Batch) -> Tensor | None:
        """Bool [L, K], the tokens up to each one, where a model reads from left to right only."""
        if not self.config.left_to_right:
            return None
        length = batch.shape[1]
        earlier = torch.ones(length, length, dtype=torch.bool, device=batch.device).tril()
        return F.pad(earlier, (batch.memory[0].shape[1] if batch.memory else 0, 0), value=True)

    def _start_query(self, batch: Batch) -> Tensor | None:
        """The first state of the query stream: the same vector at every target [B, M, D]."""
        if batch.targets is None:
            return None
        if self.query_start is None:
            raise ValueError("the batch has targets, but this model has no query stream")
        start: Tensor = self.dropout(self.query_start.expand(*batch.targets.shape, -1))
        return start


def content_visibility(batch: Batch) -> Tensor | None:
    """Which keys each token may see, broadcastable to [B, H, L, K]; None = all."""
    return _visible(batch, batch.visibility)


def target_visibility(batch: Batch) -> Tensor | None:
    """Which keys each query of the query stream may see, broadcastable to [B, H, M, K]."""
    return _visible(batch, batch.target_visibility)


def _visible(batch: Batch, visibility: Tensor | None) -> Tensor | None:
    mask = batch.attention_mask
    if visibility is None and mask is None:
        return None
    if visibility is None:
        assert mask is not None
        visible = mask[:, None, None, :]
    else:
        visible = visibility[:, None]
        visible = visible if mask is None else visible & mask[:, None, None, :]
    if batch.memory:
        visible = F.pad(visible, (batch.memory[0].shape[1], 0), value=True)
    return visible


def rows_at(x: Tensor, targets: Tensor) -> Tensor:
    """Rows [B, M, D] of [B or 1, L, D] at positions [B, M]."""
    wide = x.expand(targets.shape[0], -1, -1)
    return wide.gather(1, targets[..., None].expand(-1, -1, x.shape[-1]))


def _visible_at(visible: Tensor | None, targets: Tensor) -> Tensor | None:
    """What the tokens at positions [B, M] may see, broadcastable to [B, H, M, K]."""
    if visible is None or (visible.dim() == 4 and visible.shape[2] == 1):
        return visible  # the same for every token
    if visible.dim() == 2:
        return visible[targets][:, None]
    return rows_at(visible.squeeze(1), targets)[:, None]


def _only(
    places: Tensor,
    layer: Layer,
    hidden: Tensor,
    visible: Tensor | None,
    prepared: Prepared | None,
    memory: Tensor | None,
    source: Source | None,
) -> Tensor:
    """One step at positions [B, M] alone, zeros elsewhere [B, L, D]; other arguments as Layer's.

    A query needs no other query, so what it gives is the same.
    """
    if places.shape[1] == 0:
        return torch.zeros_like(hidden)
    found: Tensor = layer(
        hidden,
        queries=rows_at(hidden, places),
        visible=_visible_at(visible, places),
        prepared=None if prepared is None else prepared.at(places),
        memory=memory,
        source=source,
    )
    index = places[..., None].expand(-1, -1, hidden.shape[2])
    return found.new_zeros(hidden.shape).scatter(1, index, found)


def _remember(old: Tensor | None, hidden: Tensor, batch: Batch) -> Tensor:
    new = (hidden if batch.reuse is None else hidden[:, : batch.reuse]).detach()
    return (new if old is None else torch.cat([old, new], 1))[:, -batch.remember :]


def initialise(module: nn.Module, std: float, generator: torch.Generator | None = None) -> None:
    """Published initialisation: weights from a normal of ``std``, biases 0, norms 1 and 0.

    Padding rows of embedding tables are zero. The original TensorFlow code truncates the normal
    at two standard deviations; this follows the PyTorch releases, which do not.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding | nn.Conv1d):
            nn.init.normal_(part.weight, 0.0, std, generator=generator)
        if isinstance(part, nn.Linear | nn.Conv1d) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        for name, own in part.named_parameters(recurse=False):
            if name in ("query_start", "segment_vectors", *_BIASES):
                nn.init.normal_(own, 0.0, std, generator=generator)
    for part in module.modules():
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            with torch.no_grad():
                part.weight[part.padding_idx].zero_()


_BIASES = ("content_bias", "position_bias", "segment_bias")
"""XLNet draws its attention biases like weights (released code)."""
