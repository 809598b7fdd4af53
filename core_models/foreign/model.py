"""A masked-token encoder of transformers as a :class:`core_models.model.Model`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from torch import nn

from core_models.config import ForeignConfig, check_ours
from core_models.errors import InputError
from core_models.foreign.encoder import ForeignEncoder, ForeignHead
from core_models.foreign.folder import layers_of, load_whole
from core_models.foreign.tokenizer import read_tokenizer
from core_models.model import Model, check_fit
from core_models.tokenizer import Tokenizer
from core_models.tokenizer.reading import has_tokenizer


class ForeignModel(Model):
    """Runs transformers' own class; what it cannot give raises :class:`InputError`."""

    def __init__(
        self, whole: Any, headed: bool, config: ForeignConfig, tokenizer: Tokenizer | None
    ) -> None:
        nn.Module.__init__(self)
        self.name = ""
        self.spare, self.spare_fields = {}, {}
        self._tokenizer = tokenizer
        base = whole.base_model
        pieces = base.get_input_embeddings()
        if not isinstance(pieces, nn.Embedding):
            raise InputError(
                f"The piece table of a {config.family} is a {type(pieces).__name__}, which cannot "
                "be read here. Choose another model."
            )
        first, most = _positions(base, whole.config)
        self._longest = min(512, most)
        tables = replace(
            config.embeddings,
            vocabulary=pieces.num_embeddings,
            width=pieces.embedding_dim,
            positions=None if first is None else most + first,
            first_position=first or 0,
            pad_id=config.embeddings.pad_id if tokenizer is None else tokenizer.pad_id,
        )
        if tokenizer is not None:
            check_fit(tables, tokenizer)
        if first is not None:
            self._longest = most
        encoder = ForeignEncoder(
            base, layers_of(base, config), replace(config, embeddings=tables), most
        )
        encoder.settle()
        self.encoder = encoder
        self.config = encoder.config
        self.heads = nn.ModuleDict({"masked_token": ForeignHead(whole)} if headed else {})

    @property
    def longest(self) -> int:
        """Most tokens of one input: what a table of positions holds, else 512."""
        return self._longest

    def save(self, folder: str | Path) -> None:
        """Raises InputError: the folder that it came from is as good."""
        raise InputError(
            f"A {self.config.family} is opened as it is and not saved here; copy its folder."
        )

    def with_head(self, name: str, labels: Sequence[str] = (), **options: Any) -> Self:
        """Raises InputError: training is for our own families."""
        check_ours(self.config)
        raise AssertionError


def open_folder(folder: Path, *, tokenizer: bool = True) -> ForeignModel:
    """Open a folder of any masked-token encoder that transformers knows.

    Args:
        folder: config.json, safetensors, a tokenizer.
        tokenizer: whether to read the tokenizer; a model without one takes batches of ids.

    Raises:
        InputError: the folder holds nothing of the kind, or something that is refused.
    """
    whole, headed, config = load_whole(folder)
    reads = tokenizer and has_tokenizer(folder)
    model = ForeignModel(whole, headed, config, read_tokenizer(folder) if reads else None)
    model.name = folder.name
    return model.eval()


def _positions(base: nn.Module, theirs: Any) -> tuple[int | None, int]:
    """Row of the first token in the table of positions (None = no such table); most tokens."""
    most = getattr(theirs, "max_position_embeddings", None)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        return None, 512
    pieces = base.get_input_embeddings()  # type: ignore[operator]
    for part in base.modules():
        if isinstance(part, nn.Embedding) and part is not pieces and part.num_embeddings >= most:
            pad = part.padding_idx
            first = 0 if pad is None or part.num_embeddings > most else pad + 1
            return first, most - first
    return None, most
