"""The order in which a sentence is predicted, and what each stream may see. No Gradio in it.

Nothing here needs weights: the masks come from :mod:`core_models.orderings`. What a model makes of
them is in :mod:`app.labs.permutation.chances`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from app.serving.ask import MOST_SEED, clean_text, whole_number
from app.serving.pieces import SentenceToken, sentence_tokens
from core_models import InputError
from core_models.orderings import Ordering, draw_order, paper, released, sample_spans
from core_models.tokenizer import Encoding, Tokenizer

VARIANTS = ("paper", "released")
MOST_PIECES = 32
"""Pieces of a sentence in this lab, special ones included: more rows could not be read."""
MOST_K = 12
MOST_STEP = 1_000
HEAD = "permutation"


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A sentence in pieces, cut to what the lab shows."""

    encoding: Encoding
    tokens: tuple[SentenceToken, ...]
    plain: tuple[int, ...]
    """Positions of the pieces that are not special, at least one."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the visitor chose."""

    order: tuple[int, ...]
    """Plain positions in the order of their prediction; special pieces come before them."""
    seed: int
    """Of the order, where it is drawn, and of the released code's spans."""
    variant: str
    """One of `VARIANTS`."""
    k: int
    """One piece in K is predicted."""
    leak: bool
    """Every query sees itself, which is wrong."""
    memory: str | None
    """A sentence before this one, or None."""


def cut(tokenizer: Tokenizer, text: str) -> Cut:
    """A text in pieces; InputError where nothing but special pieces is left."""
    encoding = tokenizer.encode(clean_text(text), max_length=MOST_PIECES)
    plain = tuple(n for n, special in enumerate(encoding.special) if not special)
    if not plain:
        raise InputError("This text has no piece to predict. Type a few words.")
    return Cut(encoding=encoding, tokens=sentence_tokens(encoding, tokenizer), plain=plain)


def reader(infos: Sequence[cm.ModelInfo], chosen: cm.Model) -> str | None:
    """Name of the model that answers: the chosen one if it has two streams, else the first such."""
    if HEAD in chosen.heads:
        return chosen.name
    return next((info.name for info in infos if HEAD in info.heads), None)


def read_setting(question: Mapping[str, Any], sentence: Cut) -> Setting:
    """The setting in an event of the page; InputError for anything that does not fit."""
    seed = whole_number(question.get("seed", 1), "seed", 0, MOST_SEED)
    variant = question.get("variant", "paper")
    if variant not in VARIANTS:
        raise InputError(f"The variant is {str(variant)[:40]!r}; it must be paper or released.")
    order = question.get("order")
    memory = question.get("memory")
    return Setting(
        order=drawn(sentence, seed) if order is None else _order(order, sentence),
        seed=seed,
        variant=variant,
        k=whole_number(question.get("k", 6), "K", 1, MOST_K),
        leak=question.get("leak") is True,
        memory=None if memory is None else clean_text(memory),
    )


def _order(value: Any, sentence: Cut) -> tuple[int, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError("order must be a list of positions.")
    order = tuple(whole_number(entry, "A position", 0, MOST_PIECES) for entry in value)
    if sorted(order) != list(sentence.plain):
        raise InputError(
            "order must hold each position of the text once, special pieces left out: "
            f"{', '.join(map(str, sentence.plain))}."
        )
    return order


def drawn(sentence: Cut, seed: int) -> tuple[int, ...]:
    """The order that a seed gives."""
    special = torch.tensor([sentence.encoding.special])
    generator = torch.Generator().manual_seed(seed)
    order = draw_order(1, special.shape[1], generator=generator, first=special)
    return tuple(order[0].tolist()[-len(sentence.plain) :])


# --- masks ----------------------------------------------------------------------------------------


def goal(sentence: Cut, k: int) -> int:
    """How many pieces are predicted: one in K, at least one."""
    return max(1, round(len(sentence.plain) / k))


def full_order(sentence: Cut, order: Sequence[int]) -> Tensor:
    """An order over the whole input [1, L]: special pieces first, then those of the order."""
    special = [n for n in range(len(sentence.tokens)) if n not in set(sentence.plain)]
    return torch.tensor([[*special, *order]])


def spans(sentence: Cut, setting: Setting) -> Tensor:
    """Pieces that the released code would predict, bool [1, L]; special ones are left out here."""
    words = [sentence.encoding.words[n] for n in sentence.plain]
    starts = torch.tensor([[n == 0 or w != words[n - 1] for n, w in enumerate(words)]])
    found = sample_spans(
        starts,
        goal(sentence, setting.k),
        generator=torch.Generator().manual_seed(setting.seed),
        context=float(setting.k),
    )
    chosen = torch.zeros(1, len(sentence.tokens), dtype=torch.bool)
    chosen[:, list(sentence.plain)] = found
    return chosen


def ordering(
    sentence: Cut, setting: Setting, order: Sequence[int], *, every: bool = False
) -> Ordering:
    """What both streams see under an order; a leak is not in it.

    Args:
        sentence: The pieces.
        setting: Variant, K and seed; its own order is not read.
        order: Plain positions.
        every: Predict every piece, not the last 1/K only (paper; the released code has fixed
            targets).
    """
    full = full_order(sentence, order)
    if setting.variant == "paper":
        count = len(sentence.plain) if every else goal(sentence, setting.k)
        return paper(full, torch.tensor([count]))
    special = torch.tensor([sentence.encoding.special])
    return released(spans(sentence, setting), special, full.argsort(1), reuse=0)


def leaking(found: Ordering) -> Ordering:
    """The same with queries that see the piece they have to predict: wrong on purpose."""
    itself = torch.nn.functional.one_hot(found.targets, found.visibility.shape[1]).bool()
    return replace(found, target_visibility=found.target_visibility | itself)


def other_orders(sentence: Cut, setting: Setting) -> dict[str, tuple[int, ...]]:
    """Orders to compare with, by name."""
    return {
        "left": sentence.plain,
        "right": sentence.plain[::-1],
        "next": drawn(sentence, (setting.seed + 1) % MOST_SEED),
        "after": drawn(sentence, (setting.seed + 2) % MOST_SEED),
    }


# --- plain values for the page --------------------------------------------------------------------


def describe(sentence: Cut, setting: Setting, remembered: int = 0) -> dict[str, Any]:
    """Order, targets and both masks; a row of a mask is a string of 0 and 1.

    Args:
        sentence: The pieces.
        setting: What the visitor chose.
        remembered: Pieces of the sentence before, which everyone sees.
    """
    found = ordering(sentence, setting, setting.order)
    if setting.leak:
        found = leaking(found)
    targets = found.targets[0, : int(found.counts[0])].tolist()
    content, query = found.visibility[0].tolist(), found.target_visibility[0].tolist()
    # A blank of its own reads as nothing: then its piece is shown.
    names = [token.text.strip() or token.piece for token in sentence.tokens]
    return {
        "pieces": [
            {"position": n, "text": names[n], "special": token.special}
            for n, token in enumerate(sentence.tokens)
        ],
        "order": list(setting.order),
        "targets": targets,
        "content": [{"position": row, "seen": _bits(seen)} for row, seen in enumerate(content)],
        "query": [{"position": row, "seen": _bits(query[n])} for n, row in enumerate(targets)],
        "remembered": remembered,
        "truncated": sentence.encoding.truncated,
    }


def _bits(seen: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in seen)


def code_lines(model: str | None, text: str, sentence: Cut, setting: Setting) -> str:
    """Python that recomputes the masks, and with a model the probabilities."""
    full = full_order(sentence, setting.order).tolist()
    lines = [
        "from dataclasses import replace",
        "import torch",
        "import core_models as cm",
        "from core_models.orderings import paper, released",
        "",
        f"order = torch.tensor({full})  # positions, special pieces first",
    ]
    if setting.variant == "paper":
        lines.append(f"seen = paper(order, torch.tensor([{goal(sentence, setting.k)}]))")
    else:
        special = [n for n, flag in enumerate(sentence.encoding.special) if flag]
        lines += [
            f"chosen, special = torch.zeros(2, 1, {len(sentence.tokens)}, dtype=torch.bool)",
            f"chosen[:, {spans(sentence, setting)[0].nonzero().flatten().tolist()}] = True",
            f"special[:, {special}] = True",
            "seen = released(chosen, special, order.argsort(1), reuse=0)",
        ]
    lines += ["print(seen.visibility.int(), seen.targets, seen.target_visibility.int())"]
    if model is None:
        return "\n".join(lines)
    lines += [
        f"model = cm.load({model!r})",
        f"encoding = model.tokenizer.encode({text!r}, max_length={MOST_PIECES})",
        "batch = replace(",
        "    model.collate([encoding]), visibility=seen.visibility, targets=seen.targets,",
        "    target_visibility=seen.target_visibility,",
        ")",
    ]
    if setting.memory is not None:
        lines += [
            f"before = model.collate([model.tokenizer.encode({setting.memory!r}, "
            f"max_length={MOST_PIECES})])",
            "plain = 1 + max(n for n, special in enumerate(model.tokenizer.encode("
            f"{setting.memory!r}, max_length={MOST_PIECES}).special) if not special)",
            "batch = replace(batch, memory=model.encoder(replace(before, remember=plain, "
            "reuse=plain)).memory)",
        ]
    lines += [
        "with torch.inference_mode():",
        '    logits = model.heads["permutation"](model.encoder(batch).streams["query"])',
        "print(logits.softmax(-1).gather(-1, seen.labels(batch.input_ids)[..., None]))",
    ]
    return "\n".join(lines)
