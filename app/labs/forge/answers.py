"""Forge and detect: a generator fills gaps, a discriminator judges every token. No Gradio in it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from typing import Any

import torch

import core_models as cm
from app.serving.ask import (
    MOST_SEED,
    MOST_WORD_CHARACTERS,
    clean_text,
    whole_number,
)
from app.serving.pieces import one_piece, sentence_tokens
from core_models import InputError
from core_models.masking import tokens as masking
from core_models.prediction import DetectResult, Forged, detect, forge
from core_models.prediction.passes import head_of, hidden_at, seen_with
from core_models.tokenizer import Encoding, Tokenizer
from viz.svg import Wording

RATE = 0.15
THRESHOLD = 0.5
TOP = 5
MOST_FAKES = 16
TEMPERATURES = (0.1, 5.0)
FLAT = 0.02

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Game:
    """One round, checked."""

    text: str
    spans: tuple[Span, ...]
    """Characters [start, end) that the visitor has hidden; () = a draw of 15 % of the pieces."""
    seed: int
    """Of the draw of positions."""
    roll: int
    """Of the generator's samples."""
    temperature: float
    fakes: tuple[tuple[int, str], ...]
    """Positions and words of the visitor."""


def read_game(text: Any, question: Mapping[str, Any], spans: Sequence[Span] = ()) -> Game:
    """The round that the lab's controls ask for."""
    return Game(
        text=clean_text(text),
        spans=tuple(spans),
        seed=whole_number(question["seed"], "seed", 0, MOST_SEED),
        roll=whole_number(question["roll"], "roll", 0, MOST_SEED),
        temperature=_temperature(question["temperature"]),
        fakes=_fakes(question["fakes"]),
    )


def _temperature(value: Any) -> float:
    least, most = TEMPERATURES
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(
            f"The temperature is {repr(value)[:40]}; it must be between {least:g} and {most:g}."
        )
    return float(value)


def _fakes(value: Any) -> tuple[tuple[int, str], ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError("fakes must be a list of positions and words.")
    if len(value) > MOST_FAKES:
        raise InputError(f"{len(value)} fakes are too many; at most {MOST_FAKES} go at once.")
    found: dict[int, str] = {}
    for entry in value:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], str):
            raise InputError("A fake must have a position and a word.")
        word = entry[1].strip().encode("utf-8", "replace").decode("utf-8")
        if not word or len(word) > MOST_WORD_CHARACTERS:
            raise InputError(f"A fake word has 1 to {MOST_WORD_CHARACTERS} characters.")
        found[whole_number(entry[0], "position", 0, 2**31)] = word
    return tuple(found.items())


# --- playing --------------------------------------------------------------------------------------


def play(discriminator: cm.Model, generator: cm.Model | None, game: Game) -> dict[str, Any]:
    """One round as plain values; runs the models.

    Args:
        discriminator: With a replaced-token head.
        generator: Of the same vocabulary; None = there is none, so only the visitor forges.
        game: The round.
    """
    tokenizer = discriminator.tokenizer
    (encoding,) = discriminator.encode([game.text])
    before = detect(discriminator, game.text)
    answer: dict[str, Any] = {
        "tokens": [asdict(token) for token in sentence_tokens(encoding, tokenizer)],
        "before": chances(before),
        "drawn": not game.spans,
        "gaps": [],
        "after": None,
        "loss": None,
        "truncated": encoding.truncated,
        "threshold": THRESHOLD,
        "temperature": game.temperature,
        "vocabulary": tokenizer.vocabulary,
    }
    if generator is not None:
        answer |= _forgery(discriminator, generator, game, encoding)
    answer["mine"] = _mine(discriminator, game, encoding)
    answer["summary"] = summarise(answer)
    return answer


def _forgery(
    discriminator: cm.Model, generator: cm.Model, game: Game, encoding: Encoding
) -> dict[str, Any]:
    if generator.encode([game.text])[0].ids != encoding.ids:
        raise InputError(
            f"{generator.name} cuts this text into other pieces than {discriminator.name}, so its "
            "words cannot be judged by it. The two must have been trained together."
        )
    tokenizer = discriminator.tokenizer
    positions = choose(encoding, tokenizer, game.spans, game.seed)
    forged = forge(
        generator,
        game.text,
        positions,
        random=torch.Generator().manual_seed(game.roll),
        temperature=game.temperature,
    )
    after = detect(discriminator, game.text, replaced={s.position: s.id for s in forged.samples})
    rows = distributions(generator, encoding, positions, game.temperature)
    gaps = []
    for sample, candidates in zip(forged.samples, rows, strict=True):
        written = sample.original == tokenizer.mask_id
        gaps.append(
            {
                "position": sample.position,
                "written": written,
                "original": None if written else tokenizer.display(sample.original),
                "original_id": sample.original,
                "original_probability": None if written else sample.original_probability,
                "sample": {
                    "id": sample.id,
                    "piece": sample.piece,
                    "display": sample.display,
                    "probability": sample.probability,
                },
                "lucky": sample.lucky,
                "candidates": candidates,
            }
        )
    return {"gaps": gaps, "after": chances(after), "loss": losses(forged, after, tokenizer)}


def choose(encoding: Encoding, tokenizer: Tokenizer, spans: Sequence[Span], seed: int) -> list[int]:
    """Positions to hide: those under the spans, or 15 % drawn as in pretraining.

    Gaps that the text itself holds are always among them.
    """
    gaps = {p for p, index in enumerate(encoding.ids) if index == tokenizer.mask_id}
    if spans:
        found = {
            position
            for position, (first, last) in enumerate(encoding.offsets)
            if not encoding.special[position]
            and any(first < end and start < last for start, end in spans)
        }
        return sorted(found | gaps)
    ids = torch.tensor(encoding.ids)
    masked = masking.uniform(
        ids,
        torch.tensor([not s for s in encoding.special]) & (ids != tokenizer.mask_id),
        generator=torch.Generator().manual_seed(seed),
        mask_id=tokenizer.mask_id,
        vocabulary=tokenizer.vocabulary,
        rate=RATE,
    )
    return sorted({p for p, c in enumerate(masked.cases.tolist()) if c != masking.UNTOUCHED} | gaps)


def distributions(
    generator: cm.Model, encoding: Encoding, positions: Sequence[int], temperature: float
) -> list[list[dict[str, Any]]]:
    """The generator's most probable pieces for each gap, at the temperature of the draw."""
    if not positions:
        return []
    tokenizer = generator.tokenizer
    seen = seen_with(encoding, dict.fromkeys(positions, tokenizer.mask_id))
    with torch.inference_mode():
        hidden = hidden_at(generator, [seen], [(0, position) for position in positions])
        logits = head_of(generator)(hidden).float()[:, : tokenizer.vocabulary] / temperature
        top = logits.softmax(-1).topk(min(TOP, tokenizer.vocabulary), dim=-1)
    return [
        [
            {
                "id": index,
                "piece": tokenizer.piece(index),
                "display": tokenizer.display(index),
                "probability": probability,
            }
            for index, probability in zip(ids, values, strict=True)
        ]
        for ids, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    ]


def losses(forged: Forged, judged: DetectResult, tokenizer: Tokenizer) -> dict[str, Any]:
    """Where the two models get a loss: how many places, that of each, and its mean, in nats.

    The generator's is that of the hidden positions, the discriminator's that of every token,
    [CLS] and [SEP] too (arXiv 2003.10555, section 2). The text counts as given at the generator's
    temperature. At a gap of the text nobody knows the word: neither has a loss there.
    """
    known = [s for s in forged.samples if s.original != tokenizer.mask_id]
    truth = [s.original_probability for s in known]
    gaps = {s.position for s in forged.samples if s.original == tokenizer.mask_id}
    right = [
        None if v.position in gaps else v.probability if v.replaced else 1 - v.probability
        for v in judged.verdicts
    ]
    return {
        "generator": _loss(truth),
        "discriminator": _loss(right),
    }


def _loss(probabilities: Sequence[float | None]) -> dict[str, Any]:
    each = [None if p is None else -math.log(max(p, 1e-30)) for p in probabilities]
    known = [loss for loss in each if loss is not None]
    return {"count": len(known), "each": each, "mean": sum(known) / len(known) if known else None}


def _mine(discriminator: cm.Model, game: Game, encoding: Encoding) -> dict[str, Any] | None:
    """The visitor's own forgery and what the discriminator says about it."""
    if not game.fakes:
        return None
    tokenizer = discriminator.tokenizer
    fakes, replaced = [], {}
    for position, word in game.fakes:
        if position >= len(encoding) or encoding.special[position]:
            continue  # the text has changed since
        index, note = one_piece(tokenizer, word)
        if index == encoding.ids[position]:
            index, note = None, Wording("“{0}” stands there already; that is no fake.", word)
        if index is not None:
            replaced[position] = index
        fakes.append({"position": position, "word": word, "id": index, "note": note})
    judged = detect(discriminator, game.text, replaced=replaced)
    return {"fakes": fakes, "verdicts": chances(judged)}


def chances(judged: DetectResult) -> list[float]:
    """The probability "replaced" of each token."""
    return [verdict.probability for verdict in judged.verdicts]


# --- words ----------------------------------------------------------------------------------------


def joined(*sentences: str | None) -> str:
    """Sentences after each other; those that are None or empty are left out."""
    found = [each for each in sentences if each]
    return reduce(partial(Wording, "{0}\n{1}"), found) if found else ""


def summarise(answer: Mapping[str, Any]) -> list[str]:
    """What happened, in sentences."""
    after, gaps = answer["after"], [gap for gap in answer["gaps"] if not gap["written"]]
    if after is None or not gaps:
        return []
    forged = [gap for gap in gaps if not gap["lucky"]]
    caught = [gap for gap in forged if after[gap["position"]] >= THRESHOLD]
    places = {gap["position"] for gap in answer["gaps"]} - {
        gap["position"] for gap in gaps if gap["lucky"]
    }
    accused = sum(
        chance >= THRESHOLD
        for position, chance in enumerate(after)
        if position not in places and not answer["tokens"][position]["special"]
    )
    parts = []
    if forged:
        words = "It catches {0} of {1} forged word" + ("." if len(forged) == 1 else "s.")
        parts.append(Wording(words, len(caught), len(forged)))
    lucky = len(gaps) - len(forged)
    if lucky:
        one = Wording("{0} draw hit the word of the text and counts as real.", lucky)
        several = Wording("{0} draws hit the word of the text and count as real.", lucky)
        parts.append(one if lucky == 1 else several)
    words = "It accuses {0} real word" + ("" if accused == 1 else "s") + " wrongly."
    parts.append(Wording(words, accused) if accused else Wording("No real word is accused."))
    return parts


def flat_note(verdicts: Sequence[float] | None) -> str | None:
    """That verdicts are so close together that they say nothing about single words."""
    if verdicts is None or len(verdicts) < 3 or max(verdicts) - min(verdicts) >= FLAT:
        return None
    return Wording(
        "It says nearly the same of every token ({0} % to {1} %): this model cannot yet tell one "
        "word from another.",
        f"{100 * min(verdicts):.1f}",
        f"{100 * max(verdicts):.1f}",
    )


def code_lines(discriminator: str, generator: str | None, game: Game, answer: Any) -> str:
    """Python that recomputes the verdicts."""
    lines = [
        "import torch",
        "import core_models as cm",
        "from core_models.prediction import detect, forge",
        "",
        f"text = {game.text!r}",
        f"discriminator = cm.load({discriminator!r})",
    ]
    if generator is not None:
        lines += [
            f"generator = cm.load({generator!r})",
            f"random = torch.Generator().manual_seed({game.roll})",
            f"positions = {[gap['position'] for gap in answer['gaps']]}",
            "forged = forge(",
            f"    generator, text, positions, random=random, temperature={game.temperature:g}",
            ")",
            "replaced = {sample.position: sample.id for sample in forged.samples}",
            "for verdict in detect(discriminator, text, replaced=replaced).verdicts:",
            "    print(verdict.display, verdict.replaced, verdict.probability)",
        ]
    if answer["mine"]:
        own = {f["position"]: f["id"] for f in answer["mine"]["fakes"] if f["id"] is not None}
        lines += [
            f"for verdict in detect(discriminator, text, replaced={own}).verdicts:",
            "    print(verdict.display, verdict.replaced, verdict.probability)",
        ]
    return "\n".join(lines)
