"""The encoder's input sum: pieces, positions, segments."""

import math

import torch
from torch import Tensor, nn

from core_models.batch import Batch, look_up
from core_models.config import Config
from core_models.errors import InputError
from core_models.network.norms import build_norm
from core_models.network.trace import Sites


class Embeddings(nn.Module):
    """Tables of width E, summed, normed and, where the config says so, projected to D."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        parts = config.embeddings
        self.first_position = parts.first_position
        self.blank_padding = parts.blank_padding
        self.pieces = nn.Embedding(parts.vocabulary, parts.width, padding_idx=parts.pad_id)
        self.positions = _table(parts.positions, parts.width, parts.first_position - 1)
        self.segments = _table(parts.segments or None, parts.width, -1)
        first = self.projected_first = parts.projected_first
        normed = config.width if first else parts.width
        self.norm = build_norm(config, normed) if parts.normed else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.projection = (
            nn.Linear(parts.width, config.width, bias=not first)
            if config.projected
            else nn.Identity()
        )

    def forward(self, batch: Batch, sites: Sites | None = None) -> Tensor:
        """Batch of [B, L] -> [B, L, D]."""
        x = batch.embeddings
        if x is None:
            assert batch.input_ids is not None
            x = look_up(self.pieces, batch.input_ids, "input_ids")
        if sites is not None:
            x = sites.offer("embedding:pieces", x)
        if self.positions is not None:
            rows = self.positions(self._position_rows(batch))  # [1 or B, L, E]
            x = x + (rows if sites is None else sites.offer("embedding:positions", rows))
        if self.segments is not None:
            ids = batch.segment_ids
            # [E], or [B, L, E]
            rows = (
                self.segments.weight[0]
                if ids is None
                else look_up(self.segments, ids, "segment_ids")
            )
            x = x + (rows if sites is None else sites.offer("embedding:segments", rows))
        if self.projected_first:
            x = self.projection(x)
        x = self.norm(x)
        if self.blank_padding and batch.attention_mask is not None:
            x = x * batch.attention_mask[..., None]
        x = self.dropout(x)
        if not self.projected_first:
            x = self.projection(x)
        return x if sites is None else sites.offer("embedding", x)

    def alone(self, ids: Tensor) -> Tensor:
        """Pieces [B, L] without position and segment, normed and projected -> [B, L, D]."""
        x = self.pieces(ids)
        normed: Tensor = (
            self.norm(self.projection(x)) if self.projected_first else self.projection(self.norm(x))
        )
        return normed

    @torch.no_grad()
    def start_positions(self, std: float) -> None:
        """Begin the table of positions with sine waves of a standard deviation; it stays learnt.

        Waves of Attention Is All You Need (arXiv 1706.03762, 3.5), where a distance is one rotation
        for all positions: a head that looks at a neighbour is learnt sooner than from drawn rows.
        The rows before the first position stay as they were. A model without a table is unchanged.
        """
        if self.positions is None:
            return
        table = self.positions.weight[self.first_position :]
        rows, width = table.shape
        places = torch.arange(rows, device=table.device)[:, None]
        rates = torch.exp(torch.arange(0, width, 2, device=table.device) * (-math.log(1e4) / width))
        waves = torch.cat([torch.sin(places * rates), torch.cos(places * rates)], 1)[:, :width]
        table.copy_(waves * (std * math.sqrt(2)))

    def _position_rows(self, batch: Batch) -> Tensor:
        """Row of the position table for each token, [1, L] or [B, L]."""
        assert self.positions is not None
        length, first = batch.shape[1], self.first_position
        room = self.positions.num_embeddings - first
        if length > room:
            raise too_long(length, room)
        if first == 0 or batch.attention_mask is None:
            return torch.arange(first, first + length, device=batch.device)[None]
        real = batch.attention_mask.long()
        return real.cumsum(1) * real + (first - 1)  # padding lands on row first - 1


def longest_input(config: Config) -> int | None:
    """Most tokens that the model's tables of positions hold, or its turns are trained for.

    None = neither. The encoder of DeBERTa takes any length; its mask decoder has a table of
    absolute positions.
    """
    parts, decoder, rotary = config.embeddings, config.mask_decoder, config.attention.rotary
    rooms = [] if parts.positions is None else [parts.positions - parts.first_position]
    if rotary is not None:
        rooms.append(rotary.positions)
    if decoder is not None:
        rooms.append(decoder.positions)
    return min(rooms, default=None)


def too_long(length: int, room: int) -> InputError:
    """The error of an input beyond a table of positions."""
    return InputError(f"The input has {length} tokens; this model takes at most {room}.")


def _table(rows: int | None, width: int, pad_row: int) -> nn.Embedding | None:
    if rows is None:
        return None
    return nn.Embedding(rows, width, padding_idx=pad_row if pad_row >= 0 else None)
