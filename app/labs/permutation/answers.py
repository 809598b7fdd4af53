"""The order in which a sentence is predicted, and what each stream may see. No Gradio in it.

Nothing here needs weights: the masks come from :mod:`core_models.masking.orderings`. What a model
makes of them is in :mod:`app.labs.permutation.chances`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from app.serving.ask import MOST_SEED, clean_text, whole_number
from app.serving.pieces import SentenceToken, sentence_tokens
from core_models import InputError
from core_models.masking.orderings import Ordering, draw_order, paper, released, sample_spans
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
    fits: bool = True
    """Whether the order that was asked for is one of these pieces."""
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
    """The setting in the values of the lab; InputError for anything that does not fit.

    An order is [] (drawn by the seed), the name of one of `ORDERS` in a list, or positions. One
    that does not hold each position of the text once belongs to other pieces: then it is drawn.
    """
    seed = whole_number(question["seed"], "seed", 0, MOST_SEED)
    variant, order, memory = question["variant"], question["order"], question["memory"]
    blank = not memory or (isinstance(memory, str) and memory.isspace())
    if variant not in VARIANTS:
        raise InputError(f"The variant is {str(variant)[:40]!r}; it must be paper or released.")
    given = list(order) if isinstance(order, Sequence) else []
    if given and isinstance(given[0], str) and given[0] in ORDERS:
        given = list(ORDERS[given[0]](sentence))
    own = all(type(n) is int for n in given) and sorted(given) == list(sentence.plain)
    return Setting(
        order=tuple(given) if own else drawn(sentence, seed),
        fits=own or not order,
        seed=seed,
        variant=variant,
        k=whole_number(question["k"], "k", 1, MOST_K),
        leak=question["leak"] is True,
        memory=None if blank else clean_text(memory),
    )


def last_word_last(sentence: Cut) -> tuple[int, ...]:
    """The order of the text, but signs behind the last word come before all words."""
    pieces = sentence.encoding.pieces
    worded = [n for n in sentence.plain if any(map(str.isalnum, pieces[n]))]
    last = (worded or sentence.plain)[-1]
    return tuple(sorted(sentence.plain, key=lambda n: (n <= last, n)))


ORDERS: dict[str, Callable[[Cut], tuple[int, ...]]] = {
    "left": lambda sentence: sentence.plain,
    "right": lambda sentence: sentence.plain[::-1],
    "last": last_word_last,
}
"""Orders of any text, by the names that links know."""


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
        "left": ORDERS["left"](sentence),
        "right": ORDERS["right"](sentence),
        "next": drawn(sentence, (setting.seed + 1) % MOST_SEED),
        "after": drawn(sentence, (setting.seed + 2) % MOST_SEED),
    }


def code_lines(model: str | None, text: str, sentence: Cut, setting: Setting) -> str:
    """Python that recomputes the masks, and with a model the probabilities."""
    full = full_order(sentence, setting.order).tolist()
    lines = [
        "from dataclasses import replace",
        "import torch",
        "import core_models as cm",
        "from core_models.masking.orderings import paper, released",
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
    if setting.leak:
        lines += [
            "itself = torch.nn.functional.one_hot(seen.targets, order.shape[1]).bool()",
            "seen = replace(seen, target_visibility=seen.target_visibility | itself)  # the leak",
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
