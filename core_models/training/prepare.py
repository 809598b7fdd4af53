"""From text files to the run's ``data`` folder: tokenizer, token store, baselines. Done once."""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core_models.data import documents, formats
from core_models.data import similar as masking_similar
from core_models.data.chinese_words import segmenter
from core_models.data.corpus import Corpus
from core_models.data.pairs import NO_PAIR, Example
from core_models.data.similar import Similar
from core_models.data.sources import Source, read_documents
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer
from core_models.tokenizer.files import Template
from core_models.tokenizer.training import RECIPES
from core_models.training.folder import RunFolder
from core_models.training.plan import Plan
from core_models.training.settings import ASSETS, Settings, resolve_folder, resolve_texts

TRAIN, FIRST, HELD_OUT = "train", "first", "held_out"
FEWEST = 4
"""Documents of a text of which some are held out."""
_FACTS = "prepared.json"
_SIMILAR = "similar.safetensors"
_VALIDATION_COPIES = 4


@dataclass(frozen=True)
class Prepared:
    """The run's data, ready to be read."""

    tokenizer: Tokenizer
    training: TokenStore
    first: TokenStore | None
    """Shorter examples of the same documents, where the run begins with such."""
    validation: TokenStore | None
    similar: Similar | None
    """Similar words, where the masking asks for them."""
    facts: dict[str, Any]
    """Counts and baselines, as in ``status.json``."""

    @property
    def early(self) -> TokenStore:
        """What the first steps of a run read that changes on its way."""
        return self.training if self.first is None else self.first


def prepare(
    run: RunFolder, settings: Settings, plan: Plan, tokenizer: Tokenizer | None = None
) -> Prepared:
    """Build ``data`` unless it is there, and open it.

    Args:
        run: The run; paths are looked up beside its ``config.json``.
        settings: What is asked for.
        plan: What that comes to for the model's family.
        tokenizer: That of the checkpoint to continue; None = what the settings say.

    Raises:
        InputError: a file or folder is missing, or there is too little text.
    """
    wanted = _ingredients(settings, plan)
    facts = run.prepare(
        _FACTS, wanted, lambda folder: _build(folder, run, settings, plan, wanted, tokenizer)
    )
    own = Tokenizer.from_folder(run.data_path / "tokenizer")
    store = run.data_path / "store"
    similar = run.data_path / _SIMILAR
    return Prepared(
        tokenizer=own,
        training=TokenStore.open(store, TRAIN, tokenizer=own),
        first=TokenStore.open(store, FIRST, tokenizer=own) if settings.data.first_length else None,
        validation=TokenStore.open(store, HELD_OUT, tokenizer=own)
        if facts["held_out_documents"]
        else None,
        similar=Similar.load(similar) if similar.exists() else None,
        facts=facts,
    )


def _ingredients(settings: Settings, plan: Plan) -> dict[str, Any]:
    """Whatever the data folder depends on."""
    values = settings.model_dump(mode="json")
    # How batches are cut and when they are read: nothing that is kept depends on it. A length that
    # is not asked for is left out, as folders from before it existed lack it.
    unused = () if settings.data.first_length else ("first_length",)
    for name in ("even", "first_batch", "first_share", *unused):
        del values["data"][name]
    chosen = {name: values[name] for name in ("tokenizer", "data", "seed")}
    return chosen | {
        "checkpoint": settings.model.checkpoint,
        "format": plan.format,
        "vocabulary": [plan.tokenizer, plan.lowercase, plan.template],
        "similar": plan.masking.kind == "similar_word",
    }


def check_documents(count: int, held_out: float) -> None:
    """InputError for a text with too few documents to hold some of them out."""
    if held_out and count < FEWEST:
        raise InputError(
            f"The documents of the text are too few ({count}): at least {FEWEST} are needed, of "
            "which two are held out to measure on. Put a blank line between documents, for "
            "example between paragraphs."
        )


def _build(
    folder: Path,
    run: RunFolder,
    settings: Settings,
    plan: Plan,
    ingredients: dict[str, Any],
    tokenizer: Tokenizer | None,
) -> None:
    kept, unseen = _documents(run, settings)
    if tokenizer is None:
        tokenizer = _tokenizer(settings, plan, run.path, kept)
    segment = segmenter() if settings.data.chinese_words else None
    training = Corpus.encode(kept, tokenizer, segment)
    # One corpus for both splits: training documents first, held-out ones behind them.
    corpus = Corpus.encode([*kept, *unseen], tokenizer, segment)
    first = training.num_documents
    last = corpus.num_documents
    cutter = _Cutter(corpus, settings, plan, tokenizer)
    length, copies = settings.data.max_length, settings.data.duplicates
    examples = {TRAIN: cutter.examples(range(first), copies, "train", length)}
    if settings.data.first_length:
        shorter = settings.data.first_length
        examples[FIRST] = cutter.examples(range(first), copies, "train", shorter)
    if unseen and last - first < 2:
        raise InputError(
            "data.held_out: the held-out documents hold no text; use more documents, or 0"
        )
    if plan.format == "sentence_order" and not settings.data.random_for_lone:
        _check_order(corpus, {"training": range(first), "held-out": range(first, last)})
    if unseen:
        unread = range(first, last)
        examples[HELD_OUT] = cutter.examples(unread, _VALIDATION_COPIES, "held out", length)
    tokenizer.save(folder / "tokenizer")
    TokenStore.build(folder / "store", corpus, examples, tokenizer)
    if plan.masking.kind == "similar_word":
        words = masking_similar.lexicon(training)
        seed = torch.Generator().manual_seed(settings.seed)
        vectors = masking_similar.word_vectors(training, words, generator=seed)
        masking_similar.similar_table(words, vectors).save(folder / _SIMILAR)
    facts = {
        "documents": first,
        "held_out_documents": last - first,
        "tokens": len(training.tokens),
        "vocabulary": tokenizer.vocabulary,
        "baselines": baselines(training.tokens, tokenizer.vocabulary),
        "ingredients": ingredients,
    }
    (folder / _FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _documents(run: RunFolder, settings: Settings) -> tuple[list[list[str]], list[list[str]]]:
    """Documents to train on and to measure on; what is measured on is not trained on."""
    data = settings.data
    texts = list(_read(settings, data.texts, run.path))
    if not texts:
        raise InputError(
            f"data.texts: there is no text in {data.dataset or ', '.join(data.texts)}."
        )
    check_documents(len(texts), data.held_out)
    chosen, held = documents.split_texts(texts, data.held_out, settings.seed)
    kept = [texts[i] for i in chosen]
    if data.training_only:
        kept += _read(settings, data.training_only, run.path)
    unseen = [texts[i] for i in held]
    if data.held_out_texts:
        unseen += _read(settings, data.held_out_texts, run.path)
    if data.training_only or data.held_out_texts:
        kept = _without(kept, unseen, run)
    return kept, unseen


def _without(kept: list[list[str]], unseen: list[list[str]], run: RunFolder) -> list[list[str]]:
    """The training documents but for those that are measured on, which the log counts.

    Raises:
        InputError: fewer than two are left.
    """
    measured = {documents.content(text) for text in unseen}
    left = [text for text in kept if documents.content(text) not in measured]
    if dropped := len(kept) - len(left):
        run.log(f"documents that are held out, too, and are not trained on: {dropped}")
    if len(left) < 2:
        raise InputError(
            f"data.texts: of {len(kept)} documents {dropped} are held out, too, so nothing is left "
            "to train on; give other texts, or hold nothing out."
        )
    return left


def _check_order(corpus: Corpus, splits: Mapping[str, range]) -> None:
    """Every split needs a document of which two parts can change places."""
    for split, chosen in splits.items():
        if chosen and all(len(corpus.bounds(document)) < 3 for document in chosen):
            raise InputError(
                f"data.texts: no {split} document has two sentences, so there is no order to "
                "learn; sentences stand on lines of their own, an empty line ends a document "
                "(data.paragraphs: true splits lines into sentences)."
            )


def _read(settings: Settings, texts: list[str], beside: Path) -> Iterator[list[str]]:
    """Documents of the files or the data set that the settings name."""
    data = settings.data
    if not texts:
        source = Source(
            dataset=data.dataset,
            configuration=data.configuration,
            split=data.split,
            column=data.column,
            paragraphs=data.paragraphs,
        )
    else:
        paths = tuple(resolve_texts(texts, beside))
        source = Source(paths=paths, column=data.column, paragraphs=data.paragraphs)
    return read_documents(source)


def named_tokenizer(name: str, beside: Path) -> Tokenizer:
    """The tokenizer of a folder, or else of a shipped model.

    Args:
        name: as in ``tokenizer.folder``.
        beside: folder where it is looked up first.

    Raises:
        InputError: there is no such folder, or it holds no readable tokenizer.
    """
    folder, shipped = Path(resolve_folder(name, beside)), ASSETS / "models" / name
    return Tokenizer.from_folder(folder if folder.is_dir() or not shipped.is_dir() else shipped)


def _tokenizer(settings: Settings, plan: Plan, beside: Path, texts: list[list[str]]) -> Tokenizer:
    options = settings.tokenizer
    if options.folder is not None:
        return named_tokenizer(options.folder, beside)
    return Tokenizer.train(
        [sentence for text in texts for sentence in text],
        vocabulary=options.vocabulary,
        kind=plan.tokenizer,
        lowercase=plan.lowercase,
        template=_TEMPLATES[plan.template](RECIPES[plan.tokenizer].specials),
    )


_TEMPLATES = {
    "enclosing": Template.enclosing,
    "doubled": Template.doubled,
    "trailing": Template.trailing,
}


@dataclass(frozen=True)
class _Cutter:
    """Cuts documents into examples."""

    corpus: Corpus
    settings: Settings
    plan: Plan
    tokenizer: Tokenizer

    def examples(
        self, chosen: Sequence[int], copies: int, stream: str, length: int
    ) -> Iterator[Example]:
        """Examples of ``length`` tokens of several passes, each of which is cut differently."""
        data, form = self.settings.data, self.plan.format
        if form in formats.FIXED and not data.singles:
            copies = 1
        most = length - self.tokenizer.template.extra(pair=False)
        for copy in range(copies):
            generator = random.Random(f"{self.settings.seed},{stream},{copy}")
            single: list[int] = []
            if not self.plan.recurrent:
                single = [n for n in chosen if generator.random() < data.singles]
            others = sorted(set(chosen) - set(single))
            if single and len(others) == 1 and form in formats.PAIRED:  # pairs need two documents
                single, others = [*single, *others], []
            for document in single:
                yield from runs_of_sentences(self.corpus, document, most, generator)
            if len(others) < (2 if form in formats.PAIRED else 1):
                continue
            yield from formats.examples(
                form,
                self.corpus,
                others,
                max_length=length,
                generator=generator,
                short_probability=data.short_probability,
                random_for_lone=data.random_for_lone,
                order_sentences=data.order_sentences,
                specials=self.tokenizer.template.extra(pair=True),
            )


def runs_of_sentences(
    corpus: Corpus, document: int, most: int, generator: random.Random
) -> Iterator[Example]:
    """A document as single segments of 1, 2, 3, ... sentences, each number half as likely.

    People ask a model about one short sentence; one that only ever saw long pairs answers worse.

    Args:
        corpus: The pieces.
        document: Its number.
        most: Most pieces of a segment; a longer sentence is cut off at its end.
        generator: Source of the draws.
    """
    bounds = corpus.bounds(document)
    begin = 0
    while begin < len(bounds) - 1:
        end = begin + 1
        while (
            end < len(bounds) - 1
            and bounds[end + 1] - bounds[begin] <= most
            and generator.random() < 0.5
        ):
            end += 1
        stop = min(bounds[end], bounds[begin] + most)
        yield Example(bounds[begin], stop, 0, 0, NO_PAIR)
        begin = end


def baselines(tokens: np.ndarray, vocabulary: int) -> dict[str, float]:
    """Masked losses in nats that need no model: knowing nothing, and knowing frequencies only.

    ``unigram_entropy`` is the entropy of the training pieces, from which the labels are drawn; a
    model whose loss stays there has learned which pieces are frequent and nothing else.
    """
    counts = np.bincount(tokens.astype(np.int64))
    shares = counts[counts > 0] / counts.sum()
    return {
        "uniform": math.log(vocabulary),
        "unigram_entropy": float(-(shares * np.log(shares)).sum()),
    }
