"""Why did the model answer so? The question, and its explanation as plain values.

No Gradio in it.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

import core_models as cm
from app.labs.why.methods import (
    METHODS,
    STEPS,
    WINDOWS,
    Options,
    Watched,
    agreement,
    attribute,
    correlation,
    strengths,
    units,
)
from app.serving.ask import (
    Mark,
    clean_marks,
    clean_name,
    clean_text,
    clean_words,
    whole_number,
)
from app.serving.desk import Tell, cost
from app.serving.pieces import check_marks
from core_models import InputError
from core_models.prediction.passes import seen_with
from core_models.prediction.targets import (
    BASELINES,
    HEADS,
    SCALES,
    Target,
    TargetFunction,
    redrawn,
    top_blocks,
)
from core_models.tokenizer import Encoding

PAIRED = ("class", "score", "start", "end")
"""Kinds that may read a second text."""
CHECK_STEPS = 20
"""Points of integrated gradients in the check with re-drawn layers."""
_MOST_STAGES = 5

Keep = Callable[[Hashable, Callable[[], Any]], Any]
"""The kept value of a key, or the computed one."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a visitor asks, checked; what is None is chosen by `app.labs.why.scene.plan`."""

    text: str
    model: str
    marks: tuple[Mark, ...]
    second: str | None
    kind: str | None
    position: int | None
    word: int | str | None
    """The answer to explain: its number, or a word as it is typed."""
    against: int | str | None
    scale: str
    baseline: str | None
    options: Options


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question that a model can be asked."""

    target: Target
    encoding: Encoding
    """What the visitor wrote."""
    seen: Encoding
    """What the model reads of it."""
    options: Options

    def key(self, model: Hashable) -> tuple[Hashable, ...]:
        """All that the answer depends on beside the options."""
        return model, tuple(self.seen.ids), tuple(self.seen.segment_ids), self.target


def read(values: Mapping[str, Any]) -> Wanted:
    """The question that the lab's controls hold."""
    sentence, second, kind = values["sentence"], values["second"], values["kind"]
    position, baseline = _chosen(values["position"], "position"), values["baseline"] or None
    return Wanted(
        text=clean_text(sentence.get("text")),
        model=clean_name(sentence.get("model")),
        marks=clean_marks(sentence.get("marks", ())),
        second=clean_text(second) if isinstance(second, str) and second.strip() else None,
        kind=kind if isinstance(kind, str) and kind in HEADS else None,
        position=position if isinstance(position, int) else None,
        word=_chosen(values["word"], "word"),
        against=_chosen(values["against"], "word"),
        scale=_one_of(values["scale"], "scale", SCALES),
        baseline=None if baseline is None else _one_of(baseline, "baseline", BASELINES),
        options=Options(
            steps=whole_number(values["steps"], "steps", *STEPS),
            window=whole_number(values["window"], "window", *WINDOWS),
        ),
    )


def _chosen(value: Any, name: str) -> int | str | None:
    """``#7`` is the choice of number 7, any other text a word, "" nothing."""
    if value is None or isinstance(value, str):
        text = value or ""
        if re.fullmatch(r"#\d{1,9}", text):
            return int(text[1:])
        return (clean_words([text]) or (None,))[0]
    return whole_number(value, name, 0, 2**31)


def _one_of(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise InputError(f"{name} is {str(value)[:40]!r}; it must be one of {', '.join(allowed)}.")
    return str(value)


def encode(model: cm.Model, wanted: Wanted, kind: str) -> tuple[Encoding, Encoding]:
    """The text, with the second one where the kind reads two, and what the model sees of it.

    The sentence is the text of an answer, and the second text its question: it comes first, but
    last in the family whose [CLS] is last, as in fine-tuning (core_models.tasks.encode).
    """
    if kind not in PAIRED or wanted.second is None:
        (encoding,) = model.encode([wanted.text])
        return encoding, _marked(encoding, model, wanted.marks)
    if kind in ("start", "end") and not model.tokenizer.template.pad_left:
        (encoding,) = model.encode([(wanted.second, wanted.text)])
        return encoding, encoding  # the marks belong to the text, whose pieces stand elsewhere here
    (encoding,) = model.encode([(wanted.text, wanted.second)])
    first = 1 + max((n for n, side in enumerate(text_numbers(encoding)) if side == 0), default=0)
    # Marks belong to the first text, of which less is read beside a second one.
    if any(mark.position >= first for mark in wanted.marks):
        raise InputError(
            f"Beside the second sentence {wanted.model} reads only the first {first} tokens, and a "
            "word beyond them is hidden. Hide an earlier one, or use shorter sentences."
        )
    return encoding, _marked(encoding, model, wanted.marks)


def text_numbers(encoding: Encoding) -> list[int | None]:
    """Which of the two texts each piece belongs to, 0 or 1; None for special pieces.

    One that a visitor has typed ("[SEP]") stands within its text.
    """
    numbers: list[int | None] = []
    number, between = -1, True
    for special, (start, end) in zip(encoding.special, encoding.offsets, strict=True):
        added = special and start == end
        number += between and not added
        between = added
        numbers.append(None if special else number)
    return numbers


def _marked(encoding: Encoding, model: cm.Model, marks: tuple[Mark, ...]) -> Encoding:
    check_marks(marks, encoding, model.tokenizer)
    hidden = {mark.position: model.tokenizer.mask_id for mark in marks if mark.case == "mask"}
    drawn = {mark.position: mark.piece for mark in marks if mark.piece is not None}
    return seen_with(encoding, hidden | drawn)


# --- computing ------------------------------------------------------------------------------------


def explain(
    model: cm.Model, question: Question, key: tuple[Hashable, ...], tell: Tell, keep: Keep
) -> dict[str, Any]:
    """Every method's answer to one question; runs for a while.

    Args:
        model: A frozen copy that no other thread uses (`core_models.prediction.targets`).
        question: What is asked.
        key: Of the question, see `Question.key`.
        tell: Hears which share is done.
        keep: Remembers parts: moving one slider computes one method anew.
    """
    function = TargetFunction(model, question.seen, question.target)
    work = {method: units(method, question.seen, question.options) for method in METHODS}
    watched = Watched(function, sum(work.values()), tell)
    found, done = {}, 0
    for method in METHODS:
        watched.done = done
        found[method] = keep(
            (*key, method, *_matters(method, question.options)),
            lambda m=method: attribute(m, watched, model, question.seen, question.options),
        )
        done += work[method]
    value = function.value
    integrated = found["integrated"]
    difference = value - integrated["start"]
    error = sum(integrated["values"]) - difference
    rows = {method: found[method]["values"] for method in METHODS}
    kept = words_read(model, question.seen)
    return {
        "methods": rows,
        "value": value,
        "start": integrated["start"],
        "sum": sum(integrated["values"]),
        "error": error,
        "error_share": abs(error / difference) if abs(difference) > 1e-9 else None,
        "steps": question.options.steps,
        "agreement": agreement(rows, kept),
        "pieces_read": sum(kept),
    }


def _matters(method: str, options: Options) -> tuple[Hashable, ...]:
    """The options that a method depends on."""
    return {
        "integrated": (options.steps, options.baseline),
        "occlusion": (options.window, options.baseline),
    }.get(method, ())


def words_read(model: cm.Model, seen: Encoding) -> list[bool]:
    """Which pieces are words that the model reads: neither special nor hidden."""
    gap = model.tokenizer.mask_id
    return [
        not special and index != gap for index, special in zip(seen.ids, seen.special, strict=True)
    ]


def stages(model: cm.Model) -> list[int]:
    """How many of the last blocks each stage of the check draws anew, besides the heads."""
    blocks = len(top_blocks(model, model.config.blocks))
    if blocks < _MOST_STAGES:
        return list(range(blocks + 1))
    return sorted({0, 1, 2, blocks // 2, blocks})


def check(
    model: cm.Model, question: Question, base: Mapping[str, Any], seed: int, tell: Tell
) -> dict[str, Any]:
    """How alike the explanations of the trained model and of half-forgotten ones are.

    The top layers are drawn anew, from the heads downwards (Adebayo et al. 2018, arXiv
    1810.03292, section 4.1). An explanation that hardly changes does not depend on what they had
    learnt.

    Args:
        model: Is not changed.
        question: What is asked.
        base: Values of each method on the trained model.
        seed: Of the drawing.
        tell: Hears which share is done.

    Returns:
        ``stages``: blocks drawn anew, and Spearman's correlation by method.
    """
    options = replace(question.options, steps=min(CHECK_STEPS, question.options.steps))
    kept = words_read(model, question.seen)
    before = {method: strengths(base[method], kept) for method in METHODS}
    once = sum(units(method, question.seen, options) for method in METHODS)
    rows, done = [], 0
    for blocks in stages(model):
        made = redrawn(model, blocks, torch.Generator().manual_seed(seed))
        function = TargetFunction(made, question.seen, question.target)
        watched = Watched(function, once * len(stages(model)), tell)
        alike = {}
        for method in METHODS:
            watched.done = done
            values = attribute(method, watched, made, question.seen, options)["values"]
            alike[method] = correlation(before[method], strengths(values, kept))
            done += units(method, question.seen, options)
        rows.append({"blocks": blocks, "alike": alike, "value": function.value})
    return {"stages": rows, "blocks": model.config.blocks, "seed": seed}


def keeper(cache: Any) -> Keep:
    """Remembers parts of answers in a cache."""

    def keep(key: Hashable, compute: Callable[[], Any]) -> Any:
        if (known := cache.get(key)) is not None:
            return known
        found = compute()
        cache.put(key, found, cost(found))
        return found

    return keep
