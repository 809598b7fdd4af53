"""What is wrong with a run, in plain words, with the known cure. Pure functions on its reports.

Every finding rests on figures that it names, so that it can be checked against the chart.
"""

from collections.abc import Sequence
from statistics import median

from app.runs.doctor import detector as doctor_detector
from app.runs.doctor import task as doctor_task
from app.runs.doctor.case import Case, Finding

FEWEST = 5
"""Reports below which nothing is said about the shape of a curve."""
_DROP_TOKENS = 3_000_000
"""Tokens near which small models were seen to leave the unigram plateau (docs/training.md)."""
_SOON = 400_000
"""The same of a DeBERTa: relative positions find the context several times sooner."""
_FALLING_TOKENS = 150_000
"""Tokens in which a loss falls to the plateau: who reads fewer cannot be called slow."""
_HIGHEST_RATE = 0.01
"""No recipe learns faster than 0.004; from about 0.02 on runs were seen to stay on the plateau."""


def examine(case: Case) -> list[Finding]:
    """Everything worth saying, problems first."""
    rules = (
        _diverged,
        _unsteady,
        _too_few_pieces,
        _repeated,
        _plateau,
        _slow,
        _overfitting,
        _context,
        *doctor_detector.RULES,
        *doctor_task.RULES,
    )
    found = [finding for rule in rules if (finding := rule(case)) is not None]
    order = {"problem": 0, "hint": 1, "good": 2}
    return sorted(found, key=lambda finding: order[finding.level])


def _diverged(case: Case) -> Finding | None:
    reason = str(case.status.get("reason") or "")
    if case.status.get("state") != "failed" or "diverged" not in reason:
        return None
    kept = "no checkpoint had been written" not in reason
    return Finding(
        kind="diverged",
        level="problem",
        title="The loss ran away",
        text="A loss or gradient was no longer a number, so the run stopped before that update. "
        "The last checkpoint is good."
        if kept
        else "A loss or gradient was no longer a number, so the run stopped before that update. "
        "No checkpoint had been saved before.",
        cure=_calmer(case),
    )


def _unsteady(case: Case) -> Finding | None:
    """A loss that climbs again, or that stands above knowing nothing."""
    losses = case.series(f"{case.pieces}_loss")
    uniform = case.baseline("uniform") if losses else None
    losses = losses or case.series("loss")
    # Reports of a fine-tuning are single small batches: their losses jump anyway.
    if len(losses) < FEWEST or case.status.get("task"):
        return None
    values = [value for _, value in losses]
    smooth = [median(values[max(0, n - 2) : n + 1]) for n in range(len(values))]
    best = min(range(len(smooth)), key=smooth.__getitem__)
    now, rise = smooth[-1], smooth[-1] - smooth[best]
    climbed = len(smooth) - best > 3 and rise > max(0.3, 0.1 * smooth[best])
    above = uniform is not None and now > uniform + 0.3
    if climbed:
        told = f"The loss was {smooth[best]:.2f} at step {losses[best][0]:,} and is {now:.2f} now"
    elif above:
        told = f"The loss is {now:.2f}, above the {uniform:.2f} of a model that knows nothing"
    elif uniform is not None and (at := _peak(case, smooth, uniform)) is not None:
        told = (
            f"The loss was {smooth[at]:.2f} at step {losses[at][0]:,}, far above the {uniform:.2f} "
            f"of a model that knows nothing, and is {now:.2f} now"
        )
    else:
        return None
    early = losses[best][0] <= max(0.1 * case.steps, losses[0][0])
    if early and not case.part("schedule").get("warmup"):
        return Finding(
            kind="no_warmup",
            level="problem",
            title="It started too fast: there is no warm-up",
            text=f"{told}. The first updates already had the full learning rate, while the "
            "gradients of fresh weights are large and disagree.",
            cure=f"Start again with a warm-up of about {max(10, case.steps // 20):,} steps.",
        )
    return Finding(
        kind="diverging",
        level="problem",
        title="The learning rate is too high",
        text=f"{told}: the updates step over what was learned.",
        cure=_calmer(case),
    )


def _peak(case: Case, smooth: Sequence[float], uniform: float) -> int | None:
    """Where a loss stood far above knowing nothing and was not made good for since."""
    at = max(range(len(smooth)), key=smooth.__getitem__)
    entropy = case.baseline("unigram_entropy")
    lost = smooth[at] > 1.2 * uniform and (entropy is None or smooth[-1] > entropy - 0.4)
    return at if lost else None


def _too_few_pieces(case: Case) -> Finding | None:
    data = case.status.get("data") or {}
    tokens, vocabulary = data.get("tokens"), data.get("vocabulary")
    if not tokens or not vocabulary or tokens >= 10 * vocabulary:
        return None
    if case.part("model").get("checkpoint"):
        return None  # its vocabulary came with the model, which has learnt it
    fitting = max(64, round(tokens / 20, -2) or 64)
    return Finding(
        kind="small_corpus",
        level="hint",
        title="The text is small for this vocabulary",
        text=f"The training text has {tokens:,} pieces and the vocabulary {vocabulary:,} entries: "
        f"each is seen {tokens / vocabulary:.1f} times on average, many once or never.",
        cure=f"Use more text, or a vocabulary of about {int(fitting):,}.",
    )


def _repeated(case: Case) -> Finding | None:
    if case.repeated < 0.1:
        return None
    return Finding(
        kind="repeated_lines",
        level="hint",
        title="Many lines are the same",
        text=f"{case.repeated:.0%} of the lines of your text were there before. The model learns "
        "them by heart, and the held-out lines may be copies of training lines.",
        cure="Remove the repeated lines (`sort -u` where the order does not matter).",
    )


def _plateau(case: Case) -> Finding | None:
    """Near the entropy of the piece frequencies, and no longer falling."""
    losses = case.series(f"{case.pieces}_loss")
    entropy = case.baseline("unigram_entropy")
    if entropy is None or len(losses) < FEWEST:
        return None
    values = [value for _, value in losses]
    third = max(2, len(values) // 3)
    now, before = median(values[-third:]), median(values[-2 * third : -third])
    if abs(now - entropy) > 0.3 or before - now > 0.12:
        return None
    tokens = int(case.records[-1].get("tokens") or 0)
    common = (
        f"The loss stands at {now:.2f}, and {entropy:.2f} is what a model gets that only knows how "
        "frequent each piece is: it answers “the”, “,” or “.” everywhere and does not look at the "
        "words around the gap yet."
    )
    if case.pieces == "causal":
        common = (
            f"The loss stands at {now:.2f}, and {entropy:.2f} is what a model gets that only knows "
            "how frequent each piece is: it answers “the”, “,” or “.” everywhere and does not look "
            "at the words before yet."
        )
    if case.detects:
        common = (
            f"The generator's loss stands at {now:.2f}, and {entropy:.2f} is what a model gets "
            "that only knows how frequent each piece is: it puts “the”, “,” or “.” everywhere, "
            "which is easy to tell from the text."
        )
    if _rate(case) > _HIGHEST_RATE:
        return Finding(
            kind="plateau",
            level="problem",
            title="It only predicts what is frequent",
            text=f"{common} It has read {tokens / 1e6:.1f} million tokens.",
            cure=_calmer(case),
        )
    if 0 < _planned(case) < _drop(case):
        return _short(case, now, entropy)
    if tokens < _drop(case) and case.status.get("state") != "failed":
        return Finding(
            kind="plateau",
            level="hint",
            title="It only knows which pieces are frequent, so far",
            text=f"{common} Small models stay here for a while and then drop suddenly; after "
            f"{tokens / 1e6:.1f} million tokens this is normal.",
            cure=f"Continue it. On the Primer the drop came near {_drop(case):,} tokens."
            if case.status.get("state") in ("stopped", "crashed")
            else f"Wait. On the Primer the drop came near {_drop(case):,} tokens.",
        )
    return Finding(
        kind="plateau",
        level="problem",
        title="It only predicts what is frequent",
        text=f"{common} It has read {tokens / 1e6:.1f} million tokens.",
        cure="Train for more steps, use shorter examples and a smaller vocabulary, or raise the "
        f"learning rate (now {_rate(case):g}) by half with a warm-up. No dropout helps, too.",
    )


def _short(case: Case, now: float, entropy: float) -> Finding:
    """Of a run that reads too little to learn more than frequencies: nothing else is wrong."""
    planned, steps = _planned(case), case.steps or int(case.records[-1]["step"])
    wanted = round(steps * 1.2 * _drop(case) / planned, -2)
    what = (
        f"{now:.2f}, and {entropy:.2f} is what a model gets that only knows how frequent each "
        "piece is. Small models come near that first, stay for a while and then drop suddenly. On "
        f"the Primer the drop came near {_drop(case):,} tokens; this run reads {planned:,} in all."
    )
    cure = f"Train for more steps: about {int(wanted):,} instead of {steps:,}."
    if _drop(case) > _SOON:
        cure += f" Or take a DeBERTa, which was seen to drop within {_SOON:,} tokens."
    return Finding(
        kind="short",
        level="hint",
        title="The run is too short to learn more than frequencies",
        text=f"The generator's loss is {what}" if case.detects else f"The loss is {what}",
        cure=cure,
    )


def _drop(case: Case) -> int:
    """Tokens near which a model of this family was seen to leave the plateau."""
    return _SOON if str(case.status.get("family")).startswith("deberta") else _DROP_TOKENS


def _planned(case: Case) -> int:
    """Tokens that the run has read when all of its steps are made, as far as its reports tell."""
    last = case.records[-1]
    tokens, step = int(last.get("tokens") or 0), int(last["step"])
    return round(tokens / max(1, step) * max(case.steps, step))


def _slow(case: Case) -> Finding | None:
    losses = case.series(f"{case.pieces}_loss")
    entropy, uniform = case.baseline("unigram_entropy"), case.baseline("uniform")
    if entropy is None or uniform is None or len(losses) < FEWEST or not case.steps:
        return None
    step, now = losses[-1]
    if step < 0.4 * case.steps or not entropy + 0.3 < now <= uniform + 0.3:
        return None
    if now - min(value for _, value in losses) > 0.3:
        return None
    if _rate(case) <= _HIGHEST_RATE and 0 < _planned(case) < _FALLING_TOKENS:
        return _short(case, now, entropy)
    return Finding(
        kind="slow",
        level="problem",
        title="It learns too slowly",
        text=f"After {step / case.steps:.0%} of the steps the loss is {now:.2f}; the frequencies "
        f"of the pieces alone would give {entropy:.2f}.",
        cure=_calmer(case)
        if _rate(case) > _HIGHEST_RATE
        else f"Raise the learning rate (now {_rate(case):g}) three times, or train longer.",
    )


def _overfitting(case: Case) -> Finding | None:
    """Of what is learnt; a generator is there for its detector, which may go on learning."""
    name = "replaced_token" if case.detects else case.pieces
    held_out = case.series(f"validation_{name}_loss")
    training = case.series(f"{name}_loss")
    if len(held_out) < 3 or len(training) < FEWEST:
        return None
    best_step, best = min(held_out, key=lambda pair: pair[1])
    last_step, last = held_out[-1]
    at_best = [value for step, value in training if step <= best_step][-3:]
    # A detector's loss is one of two answers, and so many times smaller.
    rise, fall = (0.05 * best, 0.03 * best) if case.detects else (0.08, 0.05)
    if last_step == best_step or last - best < rise or not at_best:
        return None
    if median(value for _, value in training[-3:]) > median(at_best) - fall:
        return None
    digits = 3 if case.detects else 2
    return Finding(
        kind="overfitting",
        level="problem",
        title="It learns the text by heart",
        text=f"On held-out text the loss was best at step {best_step:,} ({best:.{digits}f}) and "
        f"has risen to {last:.{digits}f}, while the training loss went on falling.",
        cure=f"Stop near step {best_step:,}, use more text, a smaller model, or a dropout of 0.1.",
    )


def _context(case: Case) -> Finding | None:
    losses = case.series(f"{case.pieces}_loss")
    entropy = case.baseline("unigram_entropy")
    # A similar word says much of the one that it stands for, without any context.
    if entropy is None or len(losses) < FEWEST or case.hiding == "similar_word":
        return None
    values = [value for _, value in losses]
    held_out = [value for _, value in case.series(f"validation_{case.pieces}_loss")]
    # Who knows the text by heart falls below it, too, but not on text that was never shown.
    if median(values[-3:]) > entropy - 0.4 or (held_out and held_out[-1] > entropy - 0.2):
        return None
    since = losses[-1][0]
    for step, value in reversed(losses):
        if value > entropy - 0.4:
            break
        since = step
    text = (
        f"Since about step {since:,} the loss is clearly below {entropy:.2f}, which is as far "
        "as knowing the frequent pieces goes. What it gains now comes from the words around the "
        "gap."
    )
    if case.pieces == "causal":
        text = (
            f"Since about step {since:,} the loss is clearly below {entropy:.2f}, which is as far "
            "as knowing the frequent pieces goes. What it gains now comes from the words before."
        )
    if case.detects:
        text = (
            f"Since about step {since:,} the generator's loss is clearly below {entropy:.2f}, "
            "which is as far as knowing the frequent pieces goes: what it puts into the gaps fits "
            "the words around them."
        )
    return Finding(kind="context", level="good", title="It reads the context", text=text)


def _calmer(case: Case) -> str:
    rate = _rate(case)
    lower = min(rate / 3, 0.004)
    words = f"Use a lower learning rate: {lower:.1g} instead of {rate:g}"
    if case.status.get("task") or "task" in case.config:
        return words + "."  # its warm-up is a share of the steps and never left out
    warmup = case.part("schedule").get("warmup") or 0
    if warmup < 0.05 * case.steps:
        words += f", and a warm-up of about {max(10, case.steps // 20):,} steps (now {warmup:,})"
    return words + "."


def _rate(case: Case) -> float:
    """Of a fine-tuning the one that it really has, which follows its model's width."""
    found = case.part("optimizer").get("learning_rate")
    if case.status.get("task") or "task" in case.config:
        found = case.config.get("learning_rate") or case.status.get("learning_rate")
    return float(found or 5e-4)
