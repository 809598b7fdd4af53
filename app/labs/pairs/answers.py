"""Two texts: do they belong together, and in this order? No Gradio in it."""

import math
import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor

import core_models as cm
from app.serving.ask import clean_text, whole_number
from app.serving.examples import PAIRS, Texts
from core_models import InputError
from core_models.config import TransformerXL
from core_models.data import documents
from core_models.prediction import judge_pairs
from core_models.tokenizer import Encoding

PRIMER = Path(__file__).resolve().parents[3] / "assets" / "primer"
HEADS = ("next_sentence", "sentence_order")
KINDS = ("next", "swapped", "same", "other")
"""How two sentences of the Primer may stand to each other; see `Example.pair`."""
MOST_EXAMPLES = 10_000
MEASURED = 24
YES = 0.5
NEARLY = 0.05
"""A judge whose rarer answer is no more frequent answers always the same."""
_LEAST_SENTENCES = 5


class Own(NamedTuple):
    """What the lab begins with: a second text, and one about something else."""

    second: str
    other: str


OWN = {
    "en": Own("Most people there speak French.", "Farmers feed their hens with corn."),
    "zh": Own("那里的大多数人说法语。", "农民用玉米喂鸡。"),
}
_FILES = {"en": "english", "zh": "chinese"}


class Example(Texts):
    """Sentences of the Primer, or written for this tab.

    Of the Primer, ``same`` is from the passage, ``other`` from another file (Chinese: passage).
    """

    def pair(self, kind: str) -> tuple[str, str]:
        """Two of the sentences: next, swapped (next, first), same or other."""
        if kind == "swapped":
            return self.next, self.first
        second: str = getattr(self, kind)
        return self.first, second


@cache
def passages(language: str = "en") -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The Primer's files, their passages and sentences; InputError where they are not.

    Chinese, of which there is one file: each passage for itself.
    """
    files = sorted(PRIMER.glob(f"{_FILES[language]}-*.txt"))
    found = tuple(
        tuple(tuple(p) for p in documents.read([file]) if len(p) >= _LEAST_SENTENCES)
        for file in files
    )
    if language == "zh":
        found = tuple((passage,) for file in found for passage in file)
    if len([file for file in found if file]) < 2:
        raise InputError("The Primer's files are not installed, so there are no examples.")
    return found


def example(number: int, language: str = "en") -> Example:
    """The example of a number, always the same one; ``language``: en or zh."""
    draw = random.Random(number)
    files = [file for file in passages(language) if file]
    mine, others = draw.sample(range(len(files)), 2)
    passage = draw.choice(files[mine])
    at = draw.randrange(len(passage) - 1)
    far = [n for n in range(len(passage)) if abs(n - at) > 1]
    other = draw.choice(draw.choice(files[others]))
    return Example(passage[at], passage[at + 1], passage[draw.choice(far)], other)


def shown_example(number: int, language: str = "en") -> Example:
    """What the tab offers under a number: first those that are written for it (`PAIRS`).

    What is measured takes the Primer's alone (`example`), where nothing was chosen by its outcome.
    """
    chosen = PAIRS[language]
    return Example(*chosen[number]) if number < len(chosen) else example(number, language)


def constant(yes: int, asked: int) -> bool:
    """Whether a judge gives (nearly) always the same answer, to questions that differ in theirs."""
    return asked > 0 and min(yes, asked - yes) <= NEARLY * asked


def reliability(figures: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """How far a head can be trusted, from `core_models.evaluation.evaluate_text_pairs`.

    Returns:
        ``right``: share of held-out questions; ``questions``: how many; ``guesses``: whether that
        is within two standard errors of chance. None where nothing was measured.
    """
    if not figures:
        return None
    questions = 2 * figures["pairs"]  # each pair as it stands, and in its wrong form
    error = math.sqrt(0.25 / questions)
    return {
        "right": figures["accuracy"],
        "questions": questions,
        "guesses": abs(figures["accuracy"] - 0.5) <= 2 * error,
    }


# --- judging --------------------------------------------------------------------------------------


def judges(infos: Sequence[cm.ModelInfo], chosen: str, held: Sequence[str]) -> dict[str, list[str]]:
    """For each head the models that can answer, the one to ask first before the others.

    Args:
        infos: Models that are installed.
        chosen: Name of the model of the sentence bar: it alone answers where it can.
        held: Heads of the chosen model.
    """
    able = {}
    for head in HEADS:
        # A model with both heads answers by its first (core_models.prediction.judge_pair).
        mine = next((h for h in HEADS if h in held), "") == head
        others = [i.name for i in infos if next((h for h in HEADS if h in i.heads), "") == head]
        able[head] = [chosen] if mine else others
    return able


def judge(model: cm.Model, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """The model's answers to several pairs as plain values; equal pairs are asked once."""
    once = list(dict.fromkeys(pairs))
    found = dict(zip(once, judge_pairs(model, once), strict=True))
    return [found[pair].to_json() for pair in pairs]


def grid(base: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The 2 x 2 of topic (same, other) and order (right, wrong) over three texts."""
    first, follows, other = base["first"], base["next"], base["other"]
    return {
        "same_right": (first, follows),
        "same_wrong": (follows, first),
        "other_right": (first, other),
        "other_wrong": (other, first),
    }


def effects(yes: Mapping[str, float]) -> dict[str, float]:
    """By how much the answer to the true pair changes with the order, and with the topic."""
    return {
        "order": yes["same_right"] - yes["same_wrong"],
        "topic": yes["same_right"] - yes["other_right"],
    }


def read_alone(model: cm.Model, text: str) -> tuple[Tensor, Tensor]:
    """The [CLS] state [D] and the mean of all states [D] of a text read alone."""
    (encoding,) = model.encode([text])
    hidden = model.encoder(model.collate([encoding])).hidden[0].float()
    return hidden[_whole(model, encoding)], hidden.mean(0)


def cosines(
    model: cm.Model, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
) -> dict[str, float | None]:
    """Cosine of two texts that the model has read one at a time (`read_alone`).

    ``cls``: of its [CLS] states; None where that token sees nothing of the text (a model that reads
    from left to right). ``mean``: of the means over all tokens, special ones too, as the
    similarity head of :mod:`core_models.heads.task` pools them.
    """
    blind = model.config.attention.direction == "left"
    cls, mean = (
        float(F.cosine_similarity(a, b, dim=0)) for a, b in zip(first, second, strict=True)
    )
    return {"cls": None if blind else cls, "mean": mean}


def _whole(model: cm.Model, encoding: Encoding) -> int:
    """Position of the token that stands for the whole text, not of one that a visitor typed."""
    return len(encoding) - 1 if model.tokenizer.template.pad_left else 0


def drawn(model: cm.Model, first: str, second: str) -> dict[str, Any]:
    """The pair as the model reads it: pieces, segments, special pieces."""
    (encoding,) = model.encode([(first, second)])
    terms = model.config.attention.terms
    use = "none"
    if model.config.embeddings.segments > 1:
        use = "table"
    elif isinstance(terms, TransformerXL) and terms.segments:
        use = "scores"
    return {
        "pieces": [
            {
                "piece": encoding.pieces[position],
                "text": model.tokenizer.display(index),
                "id": index,
                "segment": encoding.segment_ids[position],
                "special": encoding.special[position],
                "unknown": index == model.tokenizer.unknown_id,
            }
            for position, index in enumerate(encoding.ids)
        ],
        "segments": use,
        "truncated": encoding.truncated,
    }


def look(
    model: cm.Model,
    readers: Mapping[str, cm.Model],
    pair: tuple[str, str],
    base: Mapping[str, str],
) -> dict[str, Any]:
    """All that the tab shows about two texts; runs the models.

    Args:
        model: Of the sentence bar: similarity and the drawn input.
        readers: Head -> model that answers.
        pair: The two texts.
        base: ``first``, ``next`` (its true continuation) and ``other`` for the 2 x 2.
    """
    cells = grid(base)
    heads = {}
    for head, reader in readers.items():
        now, *rest = judge(reader, [pair, *cells.values()])
        yes = {name: found["probabilities"][0] for name, found in zip(cells, rest, strict=True)}
        heads[head] = {"model": reader.name, "now": now, "cells": yes, "effects": effects(yes)}
    vectors = {text: read_alone(model, text) for text in {*pair, base["other"]}}
    return {
        "heads": heads,
        "cells": {name: list(texts) for name, texts in cells.items()},
        "similarity": {
            name: cosines(model, vectors[pair[0]], vectors[second])
            for name, second in (("pair", pair[1]), ("other", base["other"]))
        },
        "cut": any(encoding.truncated for encoding in model.encode([*vectors])),
        "input": drawn(model, *pair),
    }


def scores(
    model: cm.Model, readers: Mapping[str, cm.Model], found: Example
) -> dict[str, dict[str, float]]:
    """What each judge gives each kind of pair of an example.

    The heads, which read both texts at once, give the probability of "next" or "in order"; ``cls``
    and ``mean`` are cosines of texts that ``model`` has read alone (`cosines`).
    """
    judged = {
        head: {
            kind: said.probabilities[0]
            for kind, said in zip(
                KINDS, judge_pairs(reader, [found.pair(k) for k in KINDS]), strict=True
            )
        }
        for head, reader in readers.items()
    }
    vectors = {text: read_alone(model, text) for text in found}
    for kind in KINDS:
        # In one order for both directions: a cosine is symmetric, but its last bit need not be.
        first, second = sorted(found.pair(kind))
        for name, value in cosines(model, vectors[first], vectors[second]).items():
            if value is not None:
                judged.setdefault(name, {})[kind] = value
    return judged


def wins(found: Sequence[Mapping[str, float]]) -> dict[str, dict[str, int]]:
    """How often a judge scores the true pair above each other kind of the same example, and ties.

    Args:
        found: Score of each kind of pair, by example.
    """
    return {
        kind: {
            "won": sum(each["next"] > each[kind] for each in found),
            "tied": sum(each["next"] == each[kind] for each in found),
        }
        for kind in KINDS
        if kind != "next"
    }


# --- values of the page ---------------------------------------------------------------------------


class Asked(NamedTuple):
    """Two texts that are judged, and those of the 2 x 2."""

    kind: str
    """How they stand to each other: of ``KINDS``, or "own"."""
    pair: tuple[str, str]
    base: dict[str, str]
    """``first``, ``next`` and ``other``."""


def read_pair(question: Mapping[str, Any], language: str) -> Asked:
    """The texts of an example, or the visitor's own: ``kind``, ``example``, ``text``, ``second``.

    ``language``: of the model; a second text that still stands as the lab began is said in it.
    """
    number = whole_number(question.get("example"), "example", -1, MOST_EXAMPLES)
    kind = question.get("kind")
    if kind in KINDS:
        found = shown_example(max(0, number), language)
        base = {name: getattr(found, name) for name in ("first", "next", "other")}
        return Asked(kind, found.pair(kind), base)
    first, second = clean_text(question.get("text")), question.get("second")
    if not isinstance(second, str) or not second.strip():
        raise InputError("The second text is empty. Type one, or take an example.")
    own = OWN[language]
    second = own.second if second in {each.second for each in OWN.values()} else clean_text(second)
    other = own.other if number < 0 else shown_example(number, language).other
    return Asked("own", (first, second), {"first": first, "next": second, "other": other})


def code_lines(model: str, answering: Mapping[str, str], pair: tuple[str, str]) -> str:
    """Python that recomputes the verdicts and the similarity."""
    lines = [
        "import torch.nn.functional as F",
        "import core_models as cm",
        "from core_models.prediction import judge_pair",
        "",
        f"first = {pair[0]!r}",
        f"second = {pair[1]!r}",
    ]
    lines += [f"print(judge_pair(cm.load({name!r}), first, second))" for name in answering.values()]
    lines += [
        f"model = cm.load({model!r})",
        "a, b = (model.encoder(model.batch([text])).hidden[0] for text in (first, second))",
        "print(F.cosine_similarity(a.mean(0), b.mean(0), dim=0))",
        "print(model.encode([(first, second)])[0].segment_ids)",
    ]
    return "\n".join(lines)
