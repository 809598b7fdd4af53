"""How good the models of a folder are: the same questions for all, whoever trained them."""

import contextlib
import copy
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch

import core_models as cm
from core_models.checkpoints.files import CONFIG
from core_models.checkpoints.half import round_to_half
from core_models.data import documents
from core_models.errors import InputError
from core_models.evaluation import (
    evaluate_attention,
    evaluate_capitals,
    evaluate_forgeries,
    evaluate_minimal_pairs,
    evaluate_plain_sentences,
    evaluate_text_pairs,
    evaluate_words,
)
from core_models.evaluation.attention import plain_texts
from core_models.evaluation.forgeries import FORGERY_SENTENCES, choose_sentences
from core_models.evaluation.language import language_of
from core_models.evaluation.minimal_pairs import Pair, read_pairs
from core_models.evaluation.plain import PlainSentence, read_plain_sentences
from core_models.evaluation.text_pairs import TextPair, choose_text_pairs
from core_models.evaluation.words import Word, choose_words
from core_models.model import Model
from core_models.prediction import detect
from core_models.prediction.judge import PAIR_HEADS
from core_models.prediction.passes import KINDS, head_of, hidden_at, seen_with
from core_models.training import durable
from core_models.training.folder import read_json
from zoo.cards import FIGURES, GENERATOR, refresh

PARTS = (
    *("words", "minimal_pairs", "capitals", "plain_sentences", "text_pairs", "forgeries"),
    "attention",
)
"""The figures of a model, by what is asked."""
TEXTLESS = {"minimal_pairs", "capitals", "plain_sentences", "attention"}
"""Parts that ask about no held-out text."""
_ROWS = 64
"""Sentences of one pass."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Questions:
    """What every model is asked."""

    sentences: Sequence[str]
    """Held-out text."""
    words: Sequence[Word]
    pairs: Sequence[Pair]
    texts: Sequence[TextPair] = ()
    """Neighbouring texts; none where the held-out text is too short for them."""

    plain: Sequence[PlainSentence] = ()
    """Of all languages; a model is asked about those of its own."""

    @classmethod
    def of(
        cls, held_out: Path | None, *, words: int = 0, pairs: Sequence[Pair] | None = None
    ) -> Self:
        """From a text that no model has read; pairs None = the shipped ones.

        Without a text there are questions for :data:`TEXTLESS` parts only.
        """
        chosen = read_pairs() if pairs is None else pairs
        plain = read_plain_sentences()
        if held_out is None:
            return cls((), (), chosen, plain=plain)
        read = list(documents.read([held_out]))
        sentences = [sentence for document in read for sentence in document]
        texts: list[TextPair] = []
        with contextlib.suppress(InputError):
            texts = choose_text_pairs(read)
        return cls(sentences, choose_words(sentences, most=words), chosen, texts, plain)

    def figures(
        self, model: Model, generator: Model | None = None, only: Collection[str] = PARTS
    ) -> dict[str, Any]:
        """Answers of a model, and what it catches of its generator's forgeries.

        Minimal pairs and capitals are English sentences; other models are not asked.
        """
        found: dict[str, Any] = {}
        if set(KINDS) & set(model.heads):
            found |= self._predicted(model, only)
        if "text_pairs" in only and self.texts and set(PAIR_HEADS) & set(model.heads):
            found["text_pairs"] = asdict(evaluate_text_pairs(model, self.texts))
        if "forgeries" in only and generator is not None:
            some = choose_sentences(self.sentences, FORGERY_SENTENCES)
            found["forgeries"] = asdict(evaluate_forgeries(generator, model, some))
        if "attention" in only:
            texts = plain_texts(language_of(model.tokenizer))
            found["attention"] = asdict(evaluate_attention(model, texts))
        return found

    def _predicted(self, model: Model, only: Collection[str]) -> dict[str, Any]:
        """What a model that predicts pieces is asked."""
        found: dict[str, Any] = {}
        language = language_of(model.tokenizer)
        if "words" in only:
            found["words"] = asdict(evaluate_words(model, self.words))
        if "minimal_pairs" in only and language == "en":
            found["minimal_pairs"] = asdict(evaluate_minimal_pairs(model, self.pairs))
        if "capitals" in only and language == "en":
            # A small vocabulary may hold no capital as one piece.
            with contextlib.suppress(InputError):
                found["capitals"] = asdict(evaluate_capitals(model))
        plain = [each for each in self.plain if each.language == language]
        if "plain_sentences" in only and plain:
            found["plain_sentences"] = asdict(evaluate_plain_sentences(model, plain))
        return found


def measure(
    folder: Path, questions: Questions, only: Collection[str] | None = None
) -> dict[str, Any]:
    """Measure a model anew, whoever trained it, and keep the figures beside it and in its card.

    What ``evaluation.json`` says of its training stays as it is.

    Args:
        folder: Of the model; its generator lies beside it, under its name with ``-generator``.
        questions: Of text that this model has not read, which only the caller can know.
        only: Some of :data:`PARTS`: what is known of the others stays. None = all, and nothing of
            another measurement stays.

    Raises:
        InputError: there is no such model, or it can be asked nothing.
    """
    model, generator = _load(folder)
    found = questions.figures(model, generator, PARTS if only is None else only)
    if not found.keys() - ({"attention"} if only is None else set()):
        raise InputError(
            f"{folder.name} predicts no pieces (heads: {', '.join(model.heads) or 'none'}), and no "
            f"{folder.name}{GENERATOR} lies beside it."
            if only is None
            else f"{folder.name} can be asked nothing of {', '.join(only)}."
        )
    known = read_json(folder / FIGURES)
    kept = {k: v for k, v in known.items() if k == "run" or (only is not None and k not in only)}
    figures = kept | found
    order = [*(part for part in PARTS if part in figures), *(k for k in kept if k not in PARTS)]
    text = json.dumps({name: figures[name] for name in order}, indent=2)
    durable.write_text(folder / FIGURES, text + "\n")
    refresh(folder)
    return found


def rounding(folder: Path, questions: Questions) -> tuple[float, dict[str, Any], dict[str, Any]]:
    """What half precision changes of a model with weights in float32.

    Returns:
        The largest difference of any probability, one hidden piece in each sentence (a
        discriminator: of any token); the figures as the weights are; those of rounded weights.
    """
    model, generator = _load(folder)
    half, forger = copy.deepcopy((model, generator))
    for rounded in filter(None, (half, forger)):
        round_to_half(rounded)
    change = max(
        float((_probabilities(model, some) - _probabilities(half, some)).abs().max())
        for start in range(0, len(questions.sentences), _ROWS)
        for some in [questions.sentences[start : start + _ROWS]]
    )
    return change, questions.figures(model, generator), questions.figures(half, forger)


def _load(folder: Path) -> tuple[Model, Model | None]:
    """A model, and the generator beside it where it judges one."""
    model = cm.load(folder)
    beside = folder.with_name(f"{folder.name}{GENERATOR}")
    judges = "replaced_token" in model.heads and (beside / CONFIG).exists()
    return model, cm.load(beside) if judges else None


def _probabilities(model: Model, sentences: Sequence[str]) -> torch.Tensor:
    """Of every piece [N, V], or of every token that it is replaced [T]."""
    if not set(KINDS) & set(model.heads):
        verdicts = [v for sentence in sentences for v in detect(model, sentence).verdicts]
        return torch.tensor([verdict.probability for verdict in verdicts])
    seen, places = [], []
    for row, encoding in enumerate(model.encode(sentences)):
        usual = [p for p, special in enumerate(encoding.special) if not special]
        place = usual[len(usual) // 2]
        seen.append(seen_with(encoding, {place: model.tokenizer.mask_id}))
        places.append((row, place))
    with torch.inference_mode():
        logits: torch.Tensor = head_of(model)(hidden_at(model, seen, places))
        return logits.float().softmax(1)
