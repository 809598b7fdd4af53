"""A checkpoint ready for use: tokenizer, encoder and heads."""

import copy
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from core_models.batch import Batch, not_a_batch
from core_models.checkpoints.files import (
    CONFIG,
    load_checkpoint,
    present_heads,
    read_format,
    read_headers,
    read_json,
    save_checkpoint,
    their_names,
)
from core_models.checkpoints.formats import BY_FAMILY
from core_models.checkpoints.start import start, task_config
from core_models.config import Config, Embeddings
from core_models.errors import InputError, listed
from core_models.foreign.config import is_foreign, refuse_code
from core_models.heads.pretraining import build_head
from core_models.hub import fetch as hub
from core_models.inspection import inspect
from core_models.network.embeddings import longest_input
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise, without_values
from core_models.output import ModelOutput, ask
from core_models.tokenizer import Encoding, Tokenizer
from core_models.tokenizer.reading import has_tokenizer

SHIPPED = Path(__file__).resolve().parent.parent / "assets" / "models"
CARD = "cloze.json"
"""Optional file of a model folder: title and description for people."""


Texts = str | Sequence[str | tuple[str, str]]
"""A text, or several texts or pairs of texts (tuples)."""


class Model(nn.Module):
    """Tokenizer, encoder and the heads that a checkpoint really has.

    A head that the checkpoint lacks is absent from ``heads``; nothing is ever filled at random.
    """

    def __init__(self, config: Config, tokenizer: Tokenizer | None, heads: Iterable[str]) -> None:
        super().__init__()
        if tokenizer is not None:
            check_fit(config.embeddings, tokenizer)
        self.name = ""
        self.spare: dict[str, Tensor] = {}
        """What the files held beside the model, by its name there; :meth:`save` writes it back."""
        self.spare_fields: dict[str, Any] = {}
        """What config.json said of heads and pieces that the model has no use for, likewise."""
        self.config = config
        self._tokenizer = tokenizer
        self.encoder = Encoder(config)
        self.heads = nn.ModuleDict(
            {name: build_head(name, config, self.encoder.embeddings) for name in heads}
        )

    @classmethod
    def new(
        cls,
        config: Config,
        tokenizer: Tokenizer,
        *,
        heads: Sequence[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> Self:
        """A freshly initialised model with the config's pretraining heads, or those given."""
        model = cls(config, tokenizer, config.objectives if heads is None else heads)
        initialise(model, config.initial_std, generator)
        return model

    @classmethod
    def from_folder(cls, folder: Path, *, tokenizer: bool = True) -> "Model":
        """Read a folder in the format of transformers; InputError names whatever does not fit.

        A type that none of our formats has is opened by :mod:`core_models.foreign`.

        Args:
            folder: of the model.
            tokenizer: whether to read the tokenizer, where there is one.
        """
        values = read_json(folder / CONFIG)
        if is_foreign(values):
            adapter = import_module("core_models.foreign.model")  # it stands on this module
            other: Model = adapter.open_folder(folder, tokenizer=tokenizer)
            return other
        refuse_code(values, CONFIG)
        form = read_format(values)
        headers = their_names(form, read_headers(folder))
        config = form.settle(form.read_config(values), headers)
        found = Tokenizer.from_folder(folder) if tokenizer and has_tokenizer(folder) else None
        with without_values():
            model = cls(config, found, present_heads(form, headers))
        model.spare = load_checkpoint(model, form, config, folder)
        model.spare_fields = form.tasks.spare(values)
        model.name = folder.name
        return model.eval()

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts texts into pieces.

        Raises:
            InputError: the model was opened without one.
        """
        if self._tokenizer is None:
            raise InputError(
                f"{self.name or 'This model'} was opened without a tokenizer, so it reads no "
                "texts; give it ids: model(cm.Batch(input_ids=...))."
            )
        return self._tokenizer

    def forward(self, texts: "Texts | Batch", *, attention: bool = False) -> ModelOutput:
        """What the model says of texts: ``model("The capital of France is [MASK].")``.

        Every head answers by the way that its family takes to it: the mask decoder (DeBERTa), the
        query stream (XLNet), the place before (causal).

        Args:
            texts: a text, several of them or of pairs (tuples), or a batch [B, L].
            attention: whether to hand out the attention of every step [B, H, L, L].

        Returns:
            Hidden states, and the scores of each head by its name; see :class:`ModelOutput`.

        Raises:
            InputError: a text is blank or too long; a batch has a piece or segment that the model
                has no row for (on a CPU: a GPU is not asked for values).
        """
        if isinstance(texts, Tensor):
            raise not_a_batch(texts)
        batch = texts if isinstance(texts, Batch) else self.batch(texts)
        mask_id = -1 if self._tokenizer is None else self._tokenizer.mask_id
        return ask(self.encoder, self.heads, batch, mask_id=mask_id, attention=attention)

    @property
    def longest(self) -> int:
        """Most tokens that one input may have: what its tables of positions hold, else 512."""
        return longest_input(self.config) or 512

    def encode(self, texts: "Texts") -> list[Encoding]:
        """Tokens of each text or pair, cut to :attr:`longest`; a text alone is one row."""
        rows = [texts] if isinstance(texts, str) else listed(texts, "texts")
        pairs: list[Any] = [
            t if isinstance(t, tuple | list) and len(t) == 2 else (t, None) for t in rows
        ]
        return [self.tokenizer.encode(a, b, max_length=self.longest) for a, b in pairs]

    def batch(self, texts: "Texts") -> Batch:
        """A padded batch [B, L] of texts or pairs, or of one text, on the encoder's device."""
        return self.collate(self.encode(texts))

    def collate(self, encodings: Sequence[Encoding]) -> Batch:
        """A batch [B, L] of encodings, padded on the template's side, on the encoder's device.

        A model whose segment table has a single row (RoBERTa) reads every segment as that one, as
        in its training.
        """
        if not encodings:
            raise InputError("No text was given; pass at least one.")
        template = self.tokenizer.template
        length = max(len(e.ids) for e in encodings)
        ids = torch.full((len(encodings), length), self.config.embeddings.pad_id)
        segments = torch.full_like(ids, template.pad_segment)
        mask = torch.zeros_like(ids, dtype=torch.bool)
        for row, encoding in enumerate(encodings):
            real = len(encoding.ids)
            place = slice(length - real, length) if template.pad_left else slice(0, real)
            ids[row, place] = torch.tensor(encoding.ids)
            segments[row, place] = torch.tensor(encoding.segment_ids)
            mask[row, place] = True
        if self.config.embeddings.segments == 1:
            segments.zero_()
        batch = Batch(
            input_ids=ids,
            segment_ids=segments,
            attention_mask=None if bool(mask.all()) else mask,
        )
        return batch.to(self.encoder.embeddings.pieces.weight.device)

    def save(self, folder: str | Path) -> None:
        """Write a folder that transformers and :func:`load` open; with the tokenizer, if any."""
        path = Path(folder)
        form = BY_FAMILY[self.config.family]
        beside = None if self._tokenizer is None else self._tokenizer.save
        save_checkpoint(
            self,
            form,
            self.config,
            path,
            beside=beside,
            spare=self.spare,
            spare_fields=self.spare_fields,
        )

    def with_head(
        self,
        name: str,
        labels: Sequence[str] = (),
        *,
        dropout: float | None = None,
        pooling: str = "token",
        every_step: bool = False,
        generator: torch.Generator | None = None,
    ) -> Self:
        """A copy with a new fine-tuning head in place of all heads: its encoder is this one's.

        A pooler that a pretraining head trained is taken over where the family's files keep it
        under the same name (BERT, ALBERT), as transformers does.

        Args:
            name: ``classify``, ``multilabel``, ``regress``, ``tag``, ``span`` or ``similarity``.
            labels: names of the answers (classify, multilabel, tag).
            dropout: rate inside the head; None = the family's default.
            pooling: how a whole text is read: ``token``, ``mean`` or ``late``.
            every_step: whether tags read a learned mix of every step's states.
            generator: of the head's initial values.
        """
        config = task_config(self.config, name, labels, dropout, pooling, every_step)
        model = type(self)(config, self._tokenizer, [name])
        start(model, self, generator)
        return model.train(self.training)

    def clone(self) -> Self:
        """A deep copy that shares no tensor, with decoders tied to the copy's own table."""
        return copy.deepcopy(self)


def check_fit(tables: Embeddings, tokenizer: Tokenizer) -> None:
    """InputError where a tokenizer has ids or segments that a model's tables do not hold."""
    if tokenizer.vocabulary > tables.vocabulary:
        raise InputError(
            f"The tokenizer has {tokenizer.vocabulary} pieces but the model's table only "
            f"{tables.vocabulary} rows; they do not belong together."
        )
    template, rows = tokenizer.template, tables.segments
    slots = (*template.single, *template.pair)
    highest = max(template.pad_segment, *(slot.segment for slot in slots))
    if 1 < rows <= highest:
        raise InputError(
            f"The tokenizer numbers segments up to {highest} but the model's table has only "
            f"{rows} rows; they do not belong together."
        )


@dataclass(frozen=True)
class ModelInfo:
    """A model that can be loaded by name."""

    name: str
    family: str
    title: str
    description: str
    heads: tuple[str, ...]
    """Heads that the files hold, and so what the model was trained to answer."""
    parameters: int
    """Numbers in the files, each shared tensor once."""
    folder: Path
    left_to_right: bool = False
    """Whether each token sees itself and those before it only."""


def folders() -> list[Path]:
    """Where named models lie: the shipped folder, then those of CLOZE_MODELS (os.pathsep)."""
    extra = os.environ.get("CLOZE_MODELS", "")
    return [SHIPPED, *(Path(p) for p in extra.split(os.pathsep) if p)]


def models() -> list[ModelInfo]:
    """Every model that :func:`load` finds by name, sorted by name within its folder.

    Reads what stands before the weights in each file, never the weights. A folder that cannot be
    read is named in a warning, and hides no other; to load it is an error.
    """
    found: dict[str, ModelInfo] = {}
    taken: set[str] = set()
    for root in folders():
        for folder in (path.parent for path in sorted(root.glob(f"*/{CONFIG}"))):
            if folder.name in taken:
                continue
            taken.add(folder.name)  # a broken one, too: load finds it before the next of its name
            try:
                found[folder.name] = _info(folder)
            except InputError as error:
                warnings.warn(f"{folder} is not listed: {error}", stacklevel=2)
    return list(found.values())


def _info(folder: Path) -> ModelInfo:
    found = inspect(folder)
    card = read_json(folder / CARD) if (folder / CARD).exists() else {}
    return ModelInfo(
        name=folder.name,
        family=found.family,
        title=str(card.get("title", folder.name)),
        description=str(card.get("description", "")),
        heads=found.heads,
        parameters=found.parameters,
        folder=folder,
        left_to_right=found.config is not None and found.config.left_to_right,
    )


def config_of(folder: Path) -> Config:
    """The config of a model folder, from its headers; InputError where there is none to read."""
    found = inspect(folder)
    if found.config is None:
        raise InputError(
            f"{folder.name} is of type {found.family}, which is run by transformers: there are no "
            f"counts by part, only the {found.parameters:,} numbers of its files."
        )
    return found.config


def heads_of(folder: Path) -> tuple[str, ...]:
    """Heads that the files of a model folder hold; InputError where there is none to read."""
    return inspect(folder).heads


def named_folder(name: str) -> Path | None:
    """Where :func:`load` finds a plain name: among the named models, else as a folder here."""
    if not isinstance(name, str | Path):
        raise InputError(f"A model is named by a text or a path, not by {type(name).__name__}.")
    for path in (*(root / name for root in folders()), Path(name)):
        if os.path.exists(path / CONFIG):  # False, too, for names that no file can have
            return path
    return None


def load(name: str | Path, *, tokenizer: bool = True, token: str | bool = False) -> Model:
    """A model by shipped name, by folder in transformers format, or by hub id ``owner/model``.

    A hub id means its newest commit, ``owner/model@commit`` (all 40 digits) just that one.

    A plain name is looked up among :func:`models`, then as a folder, so that what ``save("mine")``
    wrote is found by ``load("mine")``; a :class:`~pathlib.Path` is always a folder, and a folder
    wins over a hub id of the same spelling.

    Args:
        name: of the model.
        tokenizer: whether to read the tokenizer, where there is one. A model without a tokenizer
            answers batches of ids.
        token: of the hub, for gated and private models: the token itself, or True for the one that
            this machine keeps (``hf auth login`` or ``HF_TOKEN``). False = none is sent.

    Raises:
        InputError: unknown name, or a folder that does not hold a supported model.
    """
    if isinstance(name, Path):
        return Model.from_folder(name, tokenizer=tokenizer)
    name = str(name)  # None, too, is a name of no model
    if re.fullmatch(r"[\w.-]+", name) and name not in (".", ".."):
        found = named_folder(name)
        if found is not None:
            return Model.from_folder(found, tokenizer=tokenizer)
    elif os.path.isdir(name):
        return Model.from_folder(Path(name), tokenizer=tokenizer)
    elif hub.is_hub_id(name.partition("@")[0]):
        model = Model.from_folder(hub.fetch(name, token=token), tokenizer=tokenizer)
        model.name = name
        return model
    known = ", ".join(info.name for info in models()) or "none is shipped"
    raise InputError(
        f"No model {name!r}. By name: {known}. Otherwise give a folder in transformers format "
        "or a hub id such as google-bert/bert-base-uncased."
    )
