"""The encoder: embeddings, then blocks run by a schedule."""

from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Config, check_ours
from core_models.network.attention import Shared, Source
from core_models.network.convolution import ConvolutionLayer
from core_models.network.embeddings import Embeddings, too_long
from core_models.network.layer import Layer
from core_models.network.norms import build_norm
from core_models.network.rotary import Rotation
from core_models.network.terms import build_table
from core_models.network.trace import ROTARY_SITES, Trace
from core_models.network.visibility import (
    content_visibility,
    local_visibility,
    rows_at,
    target_visibility,
)
from core_models.network.windows import Windows, block_length


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
    """Content stream before every step and ``hidden``, each [B, L, D], where asked for."""


torch.export.register_dataclass(EncoderOutput)


class Encoder(nn.Module):
    """One encoder for every family; :class:`~core_models.config.Config` holds the differences."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        check_ours(config)
        self.config = config
        self.embeddings = Embeddings(config)
        self.table = build_table(config)
        self.blocks = nn.ModuleList(Layer(config, block) for block in range(config.blocks))
        before = config.norm_place == "before"
        self.final_norm = build_norm(config, config.width) if before else nn.Identity()
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
            terms = cast(Layer, self.blocks[0]).attention.terms.names
            trace.check(self.config.steps, terms, _absent(self.config))
        first = hidden = last_input = self.embeddings(
            batch, None if trace is None else trace.at(None)
        )
        kinds = self.config.kinds
        shared = self._share(batch, whole=trace is not None)
        query = self._start_query(batch)
        shared_query = None if query is None else self._share_query(batch, shared["global"])
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
            own = shared[kinds[step]]
            if query is not None:
                if trace is None:  # an edit of one stream must not reach the other
                    source = layer.source(hidden, own, old)
                query = layer(
                    hidden,
                    shared_query,
                    queries=query,
                    memory=old,
                    source=source,
                    sites=None if trace is None else trace.at(step, "query"),
                )
            last_input = hidden
            convolution = self.convolution if step == 0 else None
            if places is not None and step == self.config.steps - 1 and convolution is None:
                hidden = _only(places, layer, hidden, own, old, source)
                break
            hidden = layer(
                hidden,
                own,
                memory=old,
                source=source,
                sites=None if trace is None else trace.at(step),
            )
            if convolution is not None:
                hidden = convolution(first, hidden, batch.attention_mask)
        streams = {}
        hidden = self.final_norm(hidden)
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
        shared = self._share(batch)["global"]
        positions = torch.arange(batch.shape[1], device=batch.device)[None]
        if targets is not None:
            queries, positions = rows_at(queries, targets), targets
            shared = shared.at(targets)
        queries = queries + self.mask_decoder(positions)
        layer = cast(Layer, self.blocks[self.config.schedule[-1]])
        source = None
        prepared = shared.prepared
        if trace is None and not (prepared and prepared.dropout):  # dropped out at every step
            source = layer.source(start, shared)
        for step in range(self.config.mask_decoder.steps):
            queries = layer(
                start,
                shared,
                queries=queries,
                source=source,
                sites=None if trace is None else trace.at(step, "mask_decoder"),
            )
        return queries

    def output_weight(self, step: int) -> Tensor:
        """Weight of a step's output projection [D, H * d]."""
        block = cast(Layer, self.blocks[self.config.schedule[step]])
        return block.attention.output.weight

    def _share(self, batch: Batch, *, whole: bool = False) -> dict[str, Shared]:
        """What the steps of each kind share; ``whole`` = every score is to be seen."""
        remembered = batch.memory[0].shape[1] if batch.memory else 0
        every = Shared(
            visible=content_visibility(batch, leftward=self.config.left_to_right),
            prepared=None if self.table is None else self.table(batch, remembered),
        )
        parts, length, device = self.config.attention, batch.shape[1], batch.device
        local = every
        if "local" in self.config.layer_kinds:
            assert parts.window is not None
            simple = batch.visibility is None and not self.config.left_to_right and not whole
            long = length > block_length(parts.window) + 2 * parts.window
            if simple and long:
                windows = Windows.of(parts.window, length, batch.attention_mask, device)
                local = replace(every, windows=windows)
            else:
                near = local_visibility(batch, parts.window, every.visible)
                local = replace(every, visible=near)
        found = {"global": every, "local": local}
        if parts.rotary is None:
            return found
        bases = {"global": parts.rotary.theta, "local": parts.rotary.local_theta}
        return {
            kind: replace(
                shared, rotation=Rotation.of(length, parts.head_width, bases[kind], device)
            )
            for kind, shared in found.items()
        }

    def _share_query(self, batch: Batch, shared: Shared) -> Shared:
        """The same for the query stream."""
        assert batch.targets is not None
        visible = target_visibility(batch, leftward=self.config.left_to_right)
        prepared = None if shared.prepared is None else shared.prepared.at(batch.targets)
        return Shared(visible=visible, prepared=prepared)

    def _start_query(self, batch: Batch) -> Tensor | None:
        """The first state of the query stream: the same vector at every target [B, M, D]."""
        if batch.targets is None:
            return None
        if self.query_start is None:
            raise ValueError("the batch has targets, but this model has no query stream")
        start: Tensor = self.dropout(self.query_start.expand(*batch.targets.shape, -1))
        return start


def _absent(config: Config) -> set[str]:
    """Sites of a trace that a model never offers."""
    tables = config.embeddings
    there = {
        "embedding:positions": tables.positions is not None,
        "embedding:segments": bool(tables.segments),
        **dict.fromkeys(ROTARY_SITES, config.attention.rotary is not None),
    }
    return {site for site, offered in there.items() if not offered}


def _only(
    places: Tensor,
    layer: Layer,
    hidden: Tensor,
    shared: Shared,
    memory: Tensor | None,
    source: Source | None,
) -> Tensor:
    """One step at positions [B, M] alone, zeros elsewhere [B, L, D]; other arguments as Layer's.

    A query needs no other query, so what it gives is the same.
    """
    if places.shape[1] == 0:
        return torch.zeros_like(hidden)
    queries, own = rows_at(hidden, places), shared.at(places)
    found: Tensor = layer(hidden, own, queries=queries, memory=memory, source=source)
    index = places[..., None].expand(-1, -1, hidden.shape[2])
    return found.new_zeros(hidden.shape).scatter(1, index, found)


def _remember(old: Tensor | None, hidden: Tensor, batch: Batch) -> Tensor:
    new = (hidden if batch.reuse is None else hidden[:, : batch.reuse]).detach()
    return (new if old is None else torch.cat([old, new], 1))[:, -batch.remember :]
