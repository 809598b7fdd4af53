"""Forge and detect: a generator fills gaps, a discriminator judges every token. No Gradio in it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
from core_models import InputError, masking
from core_models.prediction import DetectResult, Forged, detect, forge
from core_models.prediction.passes import head_of, hidden_at, seen_with
from core_models.tokenizer import Encoding, Tokenizer

RATE = 0.15
THRESHOLD = 0.5
TOP = 5
MOST_FAKES = 16
TEMPERATURES = (0.1, 5.0)

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
    """Position -> word of the visitor."""


def read_game(values: Mapping[str, Any], spans: Sequence[Span]) -> Game:
    """The round that an event of the page asks for."""
    return Game(
        text=clean_text(values.get("text")),
        spans=tuple(spans),
        seed=whole_number(values.get("seed", 1), "seed", 0, MOST_SEED),
        roll=whole_number(values.get("roll", 1), "roll", 0, MOST_SEED),
        temperature=_temperature(values.get("temperature", 1.0)),
        fakes=_fakes(values.get("fakes", ())),
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
        if not isinstance(entry, Mapping) or not isinstance(entry.get("word"), str):
            raise InputError("A fake must have a position and a word.")
        word = entry["word"].strip().encode("utf-8", "replace").decode("utf-8")
        if not word or len(word) > MOST_WORD_CHARACTERS:
            raise InputError(f"A fake word has 1 to {MOST_WORD_CHARACTERS} characters.")
        found[whole_number(entry.get("position"), "position", 0, 2**31)] = word
    return tuple(sorted(found.items()))


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
    return {"gaps": gaps, "after": chances(after), "loss": losses(forged, after)}


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


def losses(forged: Forged, judged: DetectResult) -> dict[str, Any]:
    """Where the two models get a loss, and its mean in nats.

    The generator's is that of the hidden positions, the discriminator's that of every token,
    [CLS] and [SEP] too (arXiv 2003.10555, section 2). The text counts as given at the generator's
    temperature.
    """
    truth = [s.original_probability for s in forged.samples]
    right = [v.probability if v.replaced else 1 - v.probability for v in judged.verdicts]
    return {
        "generator": {"count": len(truth), "mean": _mean_loss(truth)},
        "discriminator": {"count": len(right), "mean": _mean_loss(right)},
    }


def _mean_loss(probabilities: Sequence[float]) -> float | None:
    if not probabilities:
        return None
    return sum(-math.log(max(p, 1e-30)) for p in probabilities) / len(probabilities)


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
            index, note = None, f"“{word}” stands there already; that is no fake."
        if index is not None:
            replaced[position] = index
        fakes.append({"position": position, "word": word, "id": index, "note": note})
    judged = detect(discriminator, game.text, replaced=replaced)
    return {"fakes": fakes, "verdicts": chances(judged)}


def chances(judged: DetectResult) -> list[float]:
    """The probability "replaced" of each token."""
    return [verdict.probability for verdict in judged.verdicts]


# --- words ----------------------------------------------------------------------------------------


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
        parts.append(f"It catches {len(caught)} of {_count(len(forged), 'forged word')}.")
    lucky = len(gaps) - len(forged)
    if lucky:
        parts.append(
            f"{_count(lucky, 'draw')} hit the word of the text and "
            f"{'counts' if lucky == 1 else 'count'} as real."
        )
    parts.append(
        f"It accuses {_count(accused, 'real word')} wrongly."
        if accused
        else "No real word is accused."
    )
    return parts


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


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
        lines.append(f"mine = detect(discriminator, text, replaced={own})")
    return "\n".join(lines)
