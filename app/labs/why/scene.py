"""What can be explained of a sentence, and what is explained where the visitor leaves it open.

No Gradio in it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from app.labs.why.answers import Question, Wanted, encode, text_numbers, words_read
from app.labs.why.methods import hidden_groups
from app.serving.pieces import one_piece
from core_models import InputError
from core_models.prediction.judge import PAIR_HEADS
from core_models.prediction.passes import head_name, kind_of
from core_models.prediction.targets import Target, TargetFunction, head_for, kinds, names
from core_models.tokenizer import Encoding

TOP = 5
MOST_NAMES = 12
OUTSIDE = "O"
"""The tag of a token that belongs to no name."""
_TWO = ("start", "end")


def plan(model: cm.Model, wanted: Wanted) -> tuple[Question, dict[str, Any]]:
    """The question with everything chosen, and what the page needs to show the choices.

    Runs the model once or twice.

    Raises:
        InputError: The model has no head for it, no word is hidden, or a second text is missing.
    """
    able = kinds(model)
    if not able:
        held = ", ".join(model.heads) or "none"
        raise InputError(
            f"{model.name} has no head whose answers can be explained here (heads: {held}). Choose "
            "a model that fills gaps, judges tokens or was fine-tuned to classify, tag or answer."
        )
    kind = wanted.kind or able[0]
    _check_second(model, wanted, kind)
    encoding, seen = encode(model, wanted, kind)
    places = _places(model, wanted, kind, encoding)
    notes: list[str] = []
    position = wanted.position if wanted.position in places else None
    first = position if position is not None else next(iter(places), None)
    with torch.inference_mode():
        probe = TargetFunction(model, seen, Target(kind=kind, position=first))
        if position is None:
            position = _telling_place(model, probe, kind, places)
        if position != first:
            probe = TargetFunction(model, seen, Target(kind=kind, position=position))
        scores = probe.given[0]
        target = probe.target
    listed = names(model, kind)
    answer, against = _answers(model, wanted, target, scores, encoding, notes)
    target = Target(
        kind=kind, position=position, answer=answer, against=against, scale=_scale(wanted, kind)
    )
    # What fills gaps without ever reading [MASK] is measured from nothing at all.
    fills = kind_of(model.heads, leftward=model.config.left_to_right)
    blind = fills in ("order", "causal")
    options = replace(wanted.options, baseline=wanted.baseline or ("zero" if blind else "mask"))
    notes += _notes(model, kind, seen, options.baseline, blind)
    chances = probe.logs(probe.given)[0]
    choices = _choices(model, target, chances.exp(), encoding, listed)
    scene = {
        "model": wanted.model,
        **able_of(model),
        "kind": kind,
        "places": places,
        "position": position,
        "choices": choices,
        "answer": answer,
        "against": against,
        "scale": target.scale,
        "head": probe.head,
        "tokens": tokens(model, encoding, seen),
        "notes": notes,
    }
    return Question(target=target, encoding=encoding, seen=seen, options=options), scene


def able_of(model: cm.Model) -> dict[str, Any]:
    """What can be asked of a model, and the head that would answer for a class."""
    able = kinds(model)
    return {"kinds": able, "class_head": head_for(model, "class") if "class" in able else None}


def _scale(wanted: Wanted, kind: str) -> str:
    return "logit" if kind == "score" else wanted.scale


def _check_second(model: cm.Model, wanted: Wanted, kind: str) -> None:
    pair = kind == "class" and head_for(model, kind) in PAIR_HEADS
    if wanted.second is None and (pair or kind in _TWO):
        raise InputError(
            "This question reads two texts. Write the second one, too."
            if pair
            else "There is no question yet. Write one about the sentence."
        )


def _places(model: cm.Model, wanted: Wanted, kind: str, encoding: Encoding) -> list[int]:
    """Positions that can be asked about."""
    words = [place for place, special in enumerate(encoding.special) if not special]
    if kind == "piece":
        head_name(model)
        gap = model.tokenizer.mask_id
        marked = {mark.position for mark in wanted.marks}
        found = [p for p in words if p in marked or encoding.ids[p] == gap]
        if not found:
            raise InputError(
                "No word is hidden. Click a word of the sentence to hide it; then you can ask why "
                "the model expects what it expects there."
            )
        return found
    if kind in _TWO:
        context = 0 if model.tokenizer.template.pad_left else 1
        sides = text_numbers(encoding)
        none = len(encoding) - 1 if context == 0 else 0  # [CLS] says that there is no answer
        return sorted({none, *(p for p in words if sides[p] == context)})
    if kind not in ("replaced", "tag"):
        return []
    if not words:
        raise InputError("This text has no word that can be asked about. Type a few words.")
    return words


def _telling_place(
    model: cm.Model, probe: TargetFunction, kind: str, places: Sequence[int]
) -> int | None:
    """Where the question is most worth asking: the likeliest answer, the strongest verdict."""
    if not places:
        return None
    if kind == "piece":
        return places[0]
    if kind in _TWO:
        scores = probe.given[0]
        return max(places, key=lambda place: float(scores[place]))
    labels = names(model, kind)
    quiet = labels.index(OUTSIDE) if OUTSIDE in labels else 0
    quietly = probe.everywhere(probe.vectors)[0].softmax(-1)[:, quiet].tolist()
    return min(places, key=lambda place: quietly[place])


def _answers(
    model: cm.Model,
    wanted: Wanted,
    target: Target,
    scores: Tensor,
    encoding: Encoding,
    notes: list[str],
) -> tuple[int, int | None]:
    """The answer to explain and what it is set against; what does not fit becomes a note."""
    kind, position = target.kind, target.position
    if kind in (*_TWO, "score"):
        return (position or 0) if kind in _TWO else 0, None
    listed = names(model, kind)
    count = len(listed) or model.tokenizer.vocabulary

    def resolve(word: int | str | None) -> int | None:
        if isinstance(word, int):
            return word if word < count else None
        if word is None:
            return None
        if listed:
            return next((n for n, name in enumerate(listed) if name == word), None)
        index, note = one_piece(model.tokenizer, word)
        if note:
            notes.append(note)
        return index

    answer = resolve(wanted.word)
    if answer is None:
        assert kind != "piece" or position is not None
        original = encoding.ids[position or 0]
        if kind == "replaced":
            answer = 1
        elif kind == "piece" and original not in _nameless(model):
            answer = original
        else:
            answer = int(scores[:count].argmax())
    # Of several labels each holds or not: none is instead of another one.
    alone = head_for(model, kind) == "multilabel"
    against = None if alone else resolve(wanted.against)
    return answer, None if against == answer else against


def _nameless(model: cm.Model) -> tuple[int, ...]:
    """Pieces that are no word of the text: a gap, and what stands for an unknown word."""
    return model.tokenizer.mask_id, model.tokenizer.unknown_id


def _choices(
    model: cm.Model, target: Target, chances: Tensor, encoding: Encoding, listed: Sequence[str]
) -> list[dict[str, Any]]:
    """Answers to choose from, with their probabilities; the best first."""
    if target.kind in (*_TWO, "score"):
        return []
    count = len(listed) or model.tokenizer.vocabulary
    best = chances[:count].topk(min(count, MOST_NAMES if listed else TOP)).indices.tolist()
    chosen = [target.answer, target.against]
    original = None
    if target.kind == "piece" and target.position is not None:
        original = encoding.ids[target.position]
        original = None if original in _nameless(model) else original
    wanted = [*best, original, *chosen]
    return [
        {
            "index": index,
            "name": listed[index] if listed else model.tokenizer.display(index),
            "probability": float(chances[index]),
            "original": index == original,
        }
        for index in dict.fromkeys(index for index in wanted if index is not None)
    ]


def _notes(model: cm.Model, kind: str, seen: Encoding, start: str, blind: bool) -> list[str]:
    notes = []
    if not any(words_read(model, seen)):
        notes.append(
            "Every word is hidden, so nothing of the sentence is left that could speak for an "
            "answer."
        )
    if kind == "piece" and blind and start == "mask":
        notes.append(
            "This model never reads [MASK] in its pretraining: it does not look at hidden words at "
            "all. As a baseline, the zero vector is as good a choice."
        )
    if kind == "replaced" and start == "mask":
        notes.append(
            "A discriminator never reads [MASK] in its pretraining, so that hiding a word is "
            "strange to it. Compare with the zero vector as baseline."
        )
    table = model.encoder.embeddings.pieces.weight
    if start == "pad" and not table[model.config.embeddings.pad_id].any():
        notes.append("The vector of [PAD] in this model is zero, so both baselines are the same.")
    return notes


def tokens(model: cm.Model, encoding: Encoding, seen: Encoding) -> list[dict[str, Any]]:
    """The pieces as the page shows them: what was written, and what the model reads there."""
    found = []
    for place, number in enumerate(text_numbers(encoding)):
        start, end = encoding.offsets[place]
        written = "" if number is None else ((encoding.text, encoding.pair)[number] or "")
        text = written[start:end]
        read = seen.ids[place]
        found.append(
            {
                "position": place,
                "text": text if text.strip() else model.tokenizer.display(encoding.ids[place]),
                "piece": encoding.pieces[place],
                "read": model.tokenizer.display(read),
                "changed": read != encoding.ids[place],
                "hidden": read == model.tokenizer.mask_id,
                "special": encoding.special[place],
                "number": number or 0,
            }
        )
    return found


def code_lines(name: str, question: Question) -> str:
    """Python that recomputes the attributions.

    Args:
        name: What ``cm.load`` takes.
        question: What was asked.
    """
    target, options, encoding = question.target, question.options, question.encoding
    values = ", ".join(
        f"{field}={value!r}"
        for field, value in vars(target).items()
        if value is not None and not (field == "scale" and target.against is not None)
    )
    pairs = zip(encoding.ids, question.seen.ids, strict=True)
    changes = {place: read for place, (own, read) in enumerate(pairs) if own != read}
    text = encoding.text if encoding.pair is None else (encoding.text, encoding.pair)
    together = [mask.tolist() for mask in hidden_groups(question.seen, options.window)]
    return f"""\
import torch
from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients, Saliency
import core_models as cm
from core_models.prediction.passes import seen_with
from core_models.prediction.targets import Target, TargetFunction, baseline, frozen_copy, nothing

model = frozen_copy(cm.load({name!r}))
(encoding,) = model.encode([{text!r}])
seen = seen_with(encoding, {changes})
target = Target({values})
function = TargetFunction(model, seen, target)
start = baseline(model, seen, {options.baseline!r})
vectors, delta = IntegratedGradients(function).attribute(
    function.vectors, start, n_steps={options.steps}, return_convergence_delta=True
)
integrated = vectors.sum(-1)[0]
inputs = function.vectors.clone().requires_grad_()
gradient = InputXGradient(function).attribute(inputs).sum(-1)[0]
saliency = Saliency(function).attribute(inputs, abs=False).norm(dim=-1)[0]
groups = torch.tensor({together})  # pieces of a number are taken away together
gap = nothing(model, {options.baseline!r}).expand_as(inputs)
with torch.no_grad():
    occlusion = torch.stack([
        FeatureAblation(function).attribute(inputs, gap, feature_mask=group[None, :, None])[0, :, 0]
        for group in groups
    ]).mean(0)
for index, value in zip(seen.ids, integrated.tolist()):
    print(model.tokenizer.display(index), value)
print("the sum misses the difference by", delta.item())"""
