"""Measure what the page's presets, first sentences and lesson steps are meant to show.

``python -m benchmarks.demonstrations`` prints a line for each row of
`app.serving.demonstrations` with what was found, and ends with 1 where one does not hold;
``--lab mask`` measures one lab.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import cache, singledispatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import core_models as cm
from app.serving import statements
from app.serving.demonstrations import DEMONSTRATIONS, WINTER, Demonstration
from core_models.counting.flops import flops
from core_models.masking import tokens as masking
from core_models.prediction import (
    attention_flow,
    detect,
    fill,
    fill_jointly,
    fill_spans,
    forge,
    judge_pairs,
    lens,
    score,
    score_words,
    unmask,
)
from core_models.prediction.ablation import damage, without_heads
from core_models.prediction.passes import seen_with
from core_models.prediction.terms_view import distribution, look, switched_off
from core_models.tokenizer import Encoding

ASSETS = Path(__file__).resolve().parents[1] / "assets"
ACCUSED = 0.5
SURE, UNSURE = 0.6, 0.2
"""What a next-sentence head says at least of a true pair, and at most of a random one."""
DRAWS = 60
LENGTH = 128


class Found(NamedTuple):
    """What was measured."""

    holds: bool
    said: str


@cache
def model_of(name: str) -> cm.Model:
    """A shipped model, or that of a shipped run (``run/NAME``)."""
    run = name.removeprefix("run/")
    folder = ASSETS / "models" / name if run == name else ASSETS / "runs" / run / "model"
    return cm.load(folder).eval()


def measure(each: Demonstration) -> Found:
    """Ask the model."""
    with torch.inference_mode():
        return _measure(each.shows, each.model)


def places(model: cm.Model, text: str, *words: str) -> list[int]:
    """Positions of the pieces of words, each at its first place in the text."""
    (encoding,) = model.encode([text])
    found = []
    for word in words:
        start = text.lower().index(word.lower())
        end = start + len(word)
        found += [
            place
            for place, (first, last) in enumerate(encoding.offsets)
            if not encoding.special[place] and first < end and start < last
        ]
    return found


def _hidden(model: cm.Model, text: str, *words: str) -> tuple[Encoding, list[int], int]:
    """The input with words hidden, their places, and the id of the first."""
    (encoding,) = model.encode([text])
    at = places(model, text, *words)
    seen = seen_with(encoding, dict.fromkeys(at, model.tokenizer.mask_id))
    return seen, at, encoding.ids[at[0]]


@singledispatch
def _measure(what: Any, name: str) -> Found:
    raise TypeError(what)


# --- gaps -----------------------------------------------------------------------------------------


@_measure.register
def _(what: statements.First, name: str) -> Found:
    model = model_of(name)
    found = fill(model, what.text, masks=places(model, what.text, what.hide), top_k=1).predictions
    rows = [(p.original, p.candidates[0]) for p in found]
    holds = all(own and own.rank == 1 and own.probability >= what.least for own, _ in rows)
    said = [f"{own.display} {own.rank} ({own.probability:.1%})" for own, _ in rows if own]
    return Found(holds, f"{', '.join(said)}; first: {', '.join(best.display for _, best in rows)}")


@_measure.register
def _(what: statements.Surer, name: str) -> Found:
    chances, ranks = [], []
    for each in (name, what.than):
        model = model_of(each)
        found = fill(model, what.text, masks=places(model, what.text, what.hide)).predictions[0]
        assert found.original is not None
        chances.append(found.original.probability)
        ranks.append(found.original.rank)
    holds = ranks[0] == 1 and chances[1] <= chances[0] / 3
    return Found(holds, f"{chances[0]:.1%} (rank {ranks[0]}), {chances[1]:.1%} (rank {ranks[1]})")


@_measure.register
def _(what: statements.Prefers, name: str) -> Found:
    model = model_of(name)
    gap = places(model, what.text, what.hide)
    own, *rivals = score_words(model, what.text, [what.word, *what.rivals], gap=gap)
    chances = [np.exp(each.log_probability or -np.inf) for each in (own, *rivals)]
    said = [f"{e.word} {c:.2%}" for e, c in zip((own, *rivals), chances, strict=True)]
    holds = chances[0] > max(chances[1:]) and len(own.pieces) >= what.pieces
    return Found(holds, f"{', '.join(said)}; pieces: {' '.join(own.pieces)}")


@_measure.register
def _(what: statements.Overtakes, name: str) -> Found:
    model = model_of(name)
    (place,) = places(model, what.text, what.hide)
    rows = [r.prediction for r in lens(model, what.text, place, watch=what.rivals).layers]
    own = [row.original.rank for row in rows if row.original]
    rivals = [[word.rank or 0 for word in row.watched] for row in rows]
    behind = any(any(r < mine for r in each) for mine, each in zip(own, rivals, strict=True))
    return Found(
        own[-1] == 1 and behind, f"{own}; {[list(each) for each in zip(*rivals, strict=True)]}"
    )


@_measure.register
def _(what: statements.Together, name: str) -> Found:
    model = model_of(name)
    masks = places(model, what.text, *what.hide)
    apart, chained = (
        fill_jointly(model, what.text, masks=masks, way=way)[0]
        for way in ("independent", "left_to_right")
    )
    words = [tuple(choice.display for choice in each.choices) for each in (apart, chained)]
    holds = words == [what.apart, what.chained] and chained.chained > apart.chained
    return Found(holds, f"{words[0]} {apart.chained:.2f}, {words[1]} {chained.chained:.2f}")


@_measure.register
def _(what: statements.Ends, name: str) -> Found:
    model = model_of(name)
    masks = places(model, what.text, what.hide)
    best = fill(model, what.text, masks=masks, top_k=1).predictions[0].candidates[0]
    return Found(best.display == ".", f"{best.display} {best.probability:.1%}")


@_measure.register
def _(what: statements.Helps, name: str) -> Found:
    model = model_of(name)
    (encoding,) = model.encode([what.text])
    at = places(model, what.text, what.hide)
    every = [n for n, special in enumerate(encoding.special) if not special]
    chances = []
    for masks in (at, every):
        found = fill(model, what.text, masks=masks).predictions
        chances.append(next(p.original for p in found if p.position == at[0]))
    told, blind = (each.probability for each in chances if each)
    return Found(told >= 10 * blind, f"{told:.2%} with the sentence, {blind:.2%} without")


# --- inside ---------------------------------------------------------------------------------------


def _attention(model: cm.Model, seen: Encoding) -> tuple[np.ndarray, np.ndarray]:
    """Weights [S, H, L, L] and the norms of what is given, the same shape."""
    trace = cm.Trace(["probabilities", "v"])
    model.encoder(model.collate([seen]), trace)
    weights, given = [], []
    for step, block in enumerate(model.config.schedule):
        layer: Any = model.encoder.blocks[block]
        weights.append(trace["probabilities", step][0].float().numpy())
        values = trace["v", step][0].float().numpy()
        output = layer.attention.output.weight.detach().float().numpy()
        moved = attention_flow.moved_values(values, output)
        given.append(attention_flow.head_norms(weights[-1], moved))
    return np.stack(weights), np.stack(given)


@_measure.register
def _(what: statements.LooksAt, name: str) -> Found:
    model = model_of(name)
    seen, at, _ = _hidden(model, what.text, what.hide)
    (target,) = places(model, what.text, what.at)
    rows = _attention(model, seen)[0][:, :, at[0]]
    best = [tuple(map(int, each)) for each in np.argwhere(rows.argmax(-1) == target)]
    said = ", ".join(f"{s + 1}.{h + 1} ({rows[s, h, target]:.0%})" for s, h in best)
    return Found(bool(best), f"layers and heads: {said or 'none'}")


@_measure.register
def _(what: statements.NeedsHead, name: str) -> Found:
    model = model_of(name)
    seen, at, piece = _hidden(model, what.text, what.hide)
    if what.whole_layer:
        last = model.config.steps - 1
        off = [(last, head) for head in range(model.config.attention.heads)]
        logs = without_heads(model, seen, at[0], [(), off])[:, piece]
        share = float((logs[1] - logs[0]).exp())
        return Found(
            share <= what.left, f"{float(logs[0].exp()):.1%}, without {float(logs[1].exp()):.1%}"
        )
    worth = damage(model, seen, at[0], piece)
    step, head = divmod(int(worth.argmin()), worth.shape[1])
    share = float(worth.min().exp())
    return Found(share <= what.left, f"without {step + 1}.{head + 1} {share:.0%} of it is left")


@_measure.register
def _(what: statements.Emerges, name: str) -> Found:
    model = model_of(name)
    (encoding,) = model.encode([what.text])
    masks = []
    for place, (start, _) in enumerate(encoding.offsets):
        stays = any(0 <= start - what.text.index(word) < len(word) for word in what.stays)
        if not encoding.special[place] and not stays:
            masks.append(place)
    text = unmask(model, what.text, masks=masks, steps=what.steps).text
    said, fits = f"{text!r}", True
    if what.fits:
        once = unmask(model, what.text, masks=masks, steps=1).text
        ours, theirs = (each.total for each in score(model, [text, once]))
        fits = ours > theirs
        said += f" {ours:.1f}, at once {once!r} {theirs:.1f}"
    return Found(text == what.comes and fits, said)


@_measure.register
def _(what: statements.GivesLess, name: str) -> Found:
    model = model_of(name)
    (encoding,) = model.encode([what.text])
    special = np.array(encoding.special)
    weights, given = _attention(model, encoding)
    parts = weights[..., special].sum((2, 3)) / weights.sum((2, 3))
    step, head = np.unravel_index(int(parts.argmax()), parts.shape)
    whole = given[step, head]
    shares = [float(parts[step, head]), float(whole[:, special].sum() / whole.sum())]
    said = f"layer {step + 1}, head {head + 1}: {shares[0]:.0%} of the attention"
    return Found(shares[1] < shares[0], f"{said}, {shares[1]:.0%} of what is given")


@_measure.register
def _(what: statements.NeedsTerms, name: str) -> Found:
    model = model_of(name)
    seen, at, piece = _hidden(model, what.text, what.hide)
    rows = []
    for off in ((), what.off):
        edits = switched_off(model.config, off, "model")
        answers = look(model, seen, at, edits=edits).answers
        assert answers is not None
        rows.append(distribution(model, answers)[0].exp())
    (before, after), first = [float(row[piece]) for row in rows], int(rows[1].argmax())
    holds = int(rows[0].argmax()) == piece != first and after <= before / 10
    return Found(holds, f"{before:.1%}, then {after:.2%}; first: {model.tokenizer.display(first)}")


# --- judges ---------------------------------------------------------------------------------------


def _suspicion(name: str, text: str, word: str) -> tuple[float, float]:
    """Of a word, and the largest of the other tokens."""
    model = model_of(name)
    own = places(model, text, word)
    chances = {v.position: v.probability for v in detect(model, text).verdicts if not v.special}
    return max(chances[n] for n in own), max(c for n, c in chances.items() if n not in own)


@_measure.register
def _(what: statements.Accuses, name: str) -> Found:
    own, others = _suspicion(name, what.text, what.word)
    return Found(own > ACCUSED >= others, f"{what.word} {own:.2f}, others at most {others:.2f}")


@_measure.register
def _(what: statements.Trusts, name: str) -> Found:
    own, _ = _suspicion(name, what.text, what.word)
    return Found(own < ACCUSED, f"{what.word} {own:.2f}")


@_measure.register
def _(what: statements.Hotter, name: str) -> Found:
    detective, generator = model_of(name), model_of(f"{name}-generator")
    at = places(generator, what.text, what.hide)
    means = []
    for temperature in (1.0, what.temperature):
        random = torch.Generator().manual_seed(1)
        drawn = [
            forge(generator, what.text, at, random=random, temperature=temperature).samples[0]
            for _ in range(DRAWS)
        ]
        verdicts = [detect(detective, what.text, replaced={s.position: s.id}) for s in drawn]
        means.append(np.mean([v.verdicts[at[0]].probability for v in verdicts]))
    return Found(means[1] > means[0], f"{means[0]:.2f} at 1, {means[1]:.2f} at {what.temperature}")


@_measure.register
def _(what: statements.Recovers, name: str) -> Found:
    model = model_of(name)
    at = places(model, what.text, what.hide)
    (span,) = fill_spans(model, what.text, [(at[0], at[-1] + 1)])
    ranks = [(p.masked_token.original.display, p.masked_token.original.rank)
             for p in span.pieces if p.masked_token.original]  # fmt: skip
    return Found(all(rank == 1 for _, rank in ranks), str(ranks))


@_measure.register
def _(what: statements.Neighbours, name: str) -> Found:
    pairs = [(what.first, what.next), (what.next, what.first), (what.first, what.other)]
    found = judge_pairs(model_of(name), pairs)
    follows, swapped, other = (each.probabilities[0] for each in found)
    if found[0].head == "next_sentence":
        holds = follows >= SURE and other <= UNSURE and swapped > 0.5
    else:
        holds = follows > 0.5 > swapped
    return Found(holds, f"{found[0].head}: {follows:.2f}, swapped {swapped:.2f}, other {other:.2f}")


# --- sizes, pieces, masks -------------------------------------------------------------------------


@_measure.register
def _(what: statements.Smaller, name: str) -> Found:
    sizes = [cm.size(each) for each in (what.size, what.than)]
    own, other = (cm.count(each).base for each in (what.size, what.than))
    work = [flops(each, LENGTH).encoder for each in sizes]
    ratio = max(work) / min(work)
    holds = other >= what.times * own and (what.work is None or ratio <= what.work)
    return Found(holds, f"{own:,} and {other:,} parameters, operations differ {ratio:.2f} times")


@_measure.register
def _(what: statements.Cuts, name: str) -> Found:
    tokenizer = model_of(name).tokenizer
    encoding = tokenizer.encode(what.text)
    pieces = [tokenizer.display(n) for n in encoding.ids]
    width = len(what.pieces)
    runs = [tuple(pieces[n : n + width]) for n in range(len(pieces) - width + 1)]
    return Found(what.pieces in runs, " · ".join(pieces))


@_measure.register
def _(what: statements.Contexts, name: str) -> Found:
    model = model_of(name)
    (encoding,) = model.encode([WINTER])
    draws = {"static": 1, "copies": what.copies, "dynamic": what.epochs}[what.regime]
    inputs = set()
    for epoch in range(what.epochs):
        masked = masking.uniform(
            torch.tensor(encoding.ids),
            ~torch.tensor(encoding.special),
            generator=masking.generator_for(1, epoch % draws, 0),
            mask_id=model.tokenizer.mask_id,
            vocabulary=model.tokenizer.vocabulary,
        )
        inputs.add(tuple(masked.inputs.tolist()))
    return Found(what.least <= len(inputs) <= what.most, f"{len(inputs)} inputs")


def main(argv: Sequence[str] | None = None) -> int:
    """Print what was found; 1 = something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lab", choices=sorted({each.lab for each in DEMONSTRATIONS}))
    lab = parser.parse_args(argv).lab
    failed = 0
    for each in DEMONSTRATIONS:
        if lab in (None, each.lab):
            found = measure(each)
            failed += not found.holds
            mark, what = "ok  " if found.holds else "FAIL", type(each.shows).__name__
            line = f"{mark} {each.lab}: {each.name} [{each.model}] {what}: {found.said}"
            sys.stdout.write(line + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
