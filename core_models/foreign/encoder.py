"""An encoder of transformers behind the contract of our own (``core_models.network.encoder``)."""

import copy
import inspect
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.batch import Batch, check_ids
from core_models.config import Config
from core_models.errors import InputError
from core_models.foreign.watch import ATTENTION, RESIDUAL, Pass, watch_layer, watch_table
from core_models.network.embeddings import too_long
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.network.visibility import rows_at


class Tables(nn.Module):
    """What stands at the input: the piece table, its norm, and the projection to width D."""

    def __init__(self, base: Any, layers: nn.ModuleList, width: int) -> None:
        super().__init__()
        self.pieces: nn.Embedding = base.get_input_embeddings()
        pieces = self.pieces
        narrow = pieces.embedding_dim
        beside = next(m for m in base.modules() if pieces in m.children())
        norms = (m for m in beside.children() if getattr(m, "weight", None) is not None)
        self.norm: nn.Module = next(
            (m for m in norms if m.weight.shape == (narrow,)),
            nn.Identity(),
        )
        within = {part for layer in layers for part in layer.modules()}
        linear = (m for m in base.modules() if isinstance(m, nn.Linear) and m not in within)
        wide = (m for m in linear if m.weight.shape == (width, narrow))
        self.projection: nn.Module = (
            nn.Identity() if narrow == width else next(wide, Unshown("projection of pieces"))
        )

    def alone(self, ids: Tensor) -> Tensor:
        """Pieces [B, L] without position and segment, normed and projected -> [B, L, D]."""
        found: Tensor = self.projection(self.norm(self.pieces(ids)))
        return found


class Unshown(nn.Module):
    """In the place of a part that a class has nothing like."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: Tensor) -> Tensor:
        """Raises InputError."""
        raise InputError(f"This model has no {self.what} that can be looked at; choose another.")


class ForeignEncoder(Encoder):
    """Wraps a base model of transformers.

    Its layers are ``blocks``, each a step of its own. A trace sees :attr:`sites`.
    """

    def __init__(self, base: Any, layers: nn.ModuleList, config: Config, most: int) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.base = base
        self.blocks = layers
        self.embeddings = Tables(base, layers, config.width)  # type: ignore[assignment]
        self.table = self.convolution = self.mask_decoder = self.query_start = None
        self.final_norm = nn.Identity()
        self.sites = frozenset[str](RESIDUAL)
        """Sites of a step that a trace may ask for."""
        self.most = most
        """Most tokens of one input."""
        self.reads_padding = False
        """Whether padding changes what stands beside it (a convolution, a mix of all tokens)."""
        self._outputs: tuple[str, ...] = ()
        self._segments = "token_type_ids" in inspect.signature(base.forward).parameters
        watch_table(self.embeddings.pieces)
        for step, layer in enumerate(layers):
            watch_layer(layer, step)

    def settle(self) -> None:
        """Try out what a trace sees, and complete the config by it.

        Raises:
            InputError: the class cannot be run on a short text, or not layer after layer.
        """
        length, steps = 5, range(self.config.steps)
        trace = Trace([*RESIDUAL, *ATTENTION])
        self.sites = frozenset([*RESIDUAL, *ATTENTION])
        ids = torch.arange(length)[None] % self.config.embeddings.vocabulary
        try:
            with torch.inference_mode():
                batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids))
                passed, hidden = self._run(batch, trace)
                self.reads_padding = self._changes(hidden, ids)
        except Exception as error:  # of any kind, by what a class needs beside ids
            raise InputError(
                f"A {self.config.family} cannot be run on the ids of a short text alone "
                f"({type(error).__name__}), so it cannot be asked here. Choose another model."
            ) from None
        self.sites = frozenset(RESIDUAL)
        if any(_shape(trace, site, step) != hidden.shape for site in RESIDUAL for step in steps):
            raise InputError(
                f"The layers of a {self.config.family} do not run one after the other over all "
                "tokens, so they cannot be shown. Choose another model."
            )
        if not _has_attention(trace, steps, length):
            return
        self.sites = frozenset([*RESIDUAL, *ATTENTION])
        names = {id(p): name for name, p in self.named_parameters()}
        found = [names.get(id(passed.outputs.get(step)), "") for step in steps]
        self._outputs = tuple(found) if all(found) else ()
        heads, width = trace["v", 0].shape[1::2]
        attention = replace(self.config.attention, heads=heads, head_width=width)
        self.config = replace(self.config, attention=attention)

    def forward(
        self,
        batch: Batch,
        trace: Trace | None = None,
        *,
        every_step: bool = False,
        places: Tensor | None = None,
    ) -> EncoderOutput:
        """Run the layers; see :meth:`core_models.network.encoder.Encoder.forward`.

        Every position is computed, whatever ``places`` say.

        Raises:
            InputError: the batch or the trace asks for what the class does not have, or the input
                is too long.
            ValueError: ``places`` with a trace, which shows every position.
        """
        if places is not None and trace is not None:
            raise ValueError("a trace shows every position: leave places out")
        passed, hidden = self._run(batch, trace, every_step)
        states = () if passed.states is None else (*passed.states, hidden)
        return EncoderOutput(hidden, states=states)

    def decode(
        self,
        batch: Batch,
        output: EncoderOutput,
        trace: Trace | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """The last hidden states, at ``targets`` [B, M] where given."""
        return output.hidden if targets is None else rows_at(output.hidden, targets)

    def output_weight(self, step: int) -> Tensor:
        """Weight of a step's output projection [D, H * d].

        Raises:
            InputError: the class has no such projection, or not after every step's attention.
        """
        if not self._outputs:
            raise InputError(
                f"A {self.config.family} writes its heads into the residual stream in a way of its "
                "own, which cannot be shown. Choose another model."
            )
        layer, _, name = self._outputs[step].rpartition(".")
        weight: Tensor = getattr(self.get_submodule(layer), name)  # no parameter where it is packed
        return weight

    def _changes(self, hidden: Tensor, ids: Tensor) -> bool:
        """Whether ids [1, L] give something else than ``hidden`` with padding after them."""
        length = ids.shape[1]
        more = min(3, self.most - length)
        padded = F.pad(ids, (0, more), value=self.config.embeddings.pad_id)
        mask = torch.arange(length + more)[None] < length
        segments = torch.zeros_like(padded)
        batch = Batch(input_ids=padded, attention_mask=mask, segment_ids=segments)
        apart = self._run(batch, None)[1][:, :length] - hidden
        return bool(apart.abs().max() > 1e-3 * hidden.abs().max())

    def _run(
        self, batch: Batch, trace: Trace | None, every_step: bool = False
    ) -> tuple[Pass, Tensor]:
        self._check(batch, trace)
        passed = Pass(trace, every_step=every_step)
        given: dict[str, Tensor] = {}
        if batch.input_ids is None:
            assert batch.embeddings is not None
            given["inputs_embeds"] = batch.embeddings
        else:
            given["input_ids"], passed.vectors = batch.input_ids, batch.embeddings
        if batch.attention_mask is not None:
            given["attention_mask"] = batch.attention_mask.long()
        if batch.segment_ids is not None and self._segments:
            given["token_type_ids"] = batch.segment_ids
        try:
            with passed.watched():
                hidden: Tensor = self.base(**given)[0]
        except IndexError:
            self._check_ids(batch)
            raise
        return passed, hidden

    def _check_ids(self, batch: Batch) -> None:
        """InputError where a piece or segment has no row; reads all values."""
        if batch.input_ids is not None:
            check_ids(batch.input_ids, self.config.embeddings.vocabulary, "input_ids")
        kinds = getattr(self.base.config, "type_vocab_size", None)
        if batch.segment_ids is not None and isinstance(kinds, int):
            check_ids(batch.segment_ids, max(1, kinds), "segment_ids")

    def _check(self, batch: Batch, trace: Trace | None) -> None:
        if batch.shape[1] > self.most:
            raise too_long(batch.shape[1], self.most)
        for what in ("visibility", "targets", "memory"):
            if getattr(batch, what) not in (None, ()):
                raise InputError(
                    f"A {self.config.family} is run by transformers and takes no {what} of a "
                    "batch. Choose a model of one of our own families for that."
                )
        if trace is None:
            return
        trace.check(self.config.steps, ())
        for site in sorted(trace.sites | {edit.site for edit in trace.edits}):
            if site not in self.sites:
                raise self._unshown(site)

    def _unshown(self, site: str) -> InputError:
        family = self.config.family
        if site in ATTENTION:
            return InputError(
                f"A {family} attends in a way of its own, which cannot be shown. Choose another "
                "model."
            )
        if site == "content_score" or site.startswith("term:"):
            return InputError(
                f"A {family} is run by transformers, which does not hand out the parts of a score. "
                "Choose a model of one of our own families for that."
            )
        return InputError(
            f"A {family} is run by transformers, which does not show {site}; there is "
            f"{', '.join(sorted(self.sites))}."
        )


def _shape(trace: Trace, site: str, step: int) -> torch.Size | None:
    found = trace.records.get((site, step, "content"))
    return None if found is None else found.shape


def _has_attention(trace: Trace, steps: range, length: int) -> bool:
    """Whether every site of attention was met in every step, with one map for each head."""
    if any(_shape(trace, site, step) is None for site in ATTENTION for step in steps):
        return False
    maps = [trace["probabilities", step] for step in steps]
    shape = (1, trace["v", 0].shape[1], length, length)
    return all(m.shape == shape and bool((m.sum(-1) - 1).abs().max() < 1e-3) for m in maps)


class _Output:
    """A base model's output of which only the hidden states are there."""

    def __init__(self, hidden: Tensor | None) -> None:
        self.last_hidden_state = hidden

    def __getitem__(self, place: int | slice) -> Any:
        return (self.last_hidden_state,)[place]

    def __getattr__(self, name: str) -> None:
        return None


class _Handed(nn.Module):
    """In the place of the base model: gives back the hidden states that it was handed."""

    def forward(self, *args: Any, inputs_embeds: Tensor | None = None, **kwargs: Any) -> _Output:
        """[B, L, D] -> the same, as a base model's output."""
        return _Output(inputs_embeds)


class ForeignHead(nn.Module):
    """The masked-token head of a transformers class, whatever its parts are called."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        theirs = copy.copy(whole)
        theirs._modules = {**whole._modules, whole.base_model_prefix: _Handed()}
        self.theirs = theirs

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., D] -> logits [..., V]."""
        rows = hidden.reshape(1, -1, hidden.shape[-1])
        logits: Tensor = self.theirs(inputs_embeds=rows).logits
        return logits.reshape(*hidden.shape[:-1], -1)
