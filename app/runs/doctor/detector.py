"""What is wrong with replaced-token detection: a generator too strong, a detector that is blind."""

import math
from statistics import median

from app.runs.doctor.case import Case, Finding

_FEWEST = 5
_MASTER = 0.35
"""Share of filled gaps from which on a generator leaves too little to find."""
_PATIENCE_TOKENS = 3_000_000
"""Tokens after which a detector should have begun to find something."""


def _blind(case: Case) -> tuple[float, float, float] | None:
    """Share replaced, the loss of always saying the same, and the loss of now."""
    verdicts = case.series("replaced_token_loss")
    guesses = case.series("masked_token_accuracy")
    if len(verdicts) < _FEWEST or len(guesses) < _FEWEST:
        return None
    told = case.series("replaced_token_share")
    if told:
        share = median(value for _, value in told[-3:])
    else:
        rate = case.part("masking").get("rate") or 0.15
        share = rate * (1 - median(value for _, value in guesses[-3:]))
    if not 0 < share < 1:
        return None
    # Known: how many tokens were replaced, and nothing else.
    blind = -(share * math.log(share) + (1 - share) * math.log(1 - share))
    return share, blind, median(value for _, value in verdicts[-3:])


def _finds_nothing(case: Case, *, master: bool) -> tuple[float, float, float] | None:
    """As `_blind`, where the detector never looks and the generator is, or is no, master."""
    seen = _blind(case)
    if seen is None or seen[2] < 0.95 * seen[1] or (_right(case) >= _MASTER) != master:
        return None
    return seen


def _right(case: Case) -> float:
    """Share of the gaps that the generator fills correctly of late."""
    return median(value for _, value in case.series("masked_token_accuracy")[-3:])


def _generator(case: Case) -> Finding | None:
    """A generator that is right too often leaves nothing to find."""
    seen = _finds_nothing(case, master=True)
    if seen is None:
        return None
    share, blind, now = seen
    return Finding(
        kind="strong_generator",
        level="problem",
        title="The generator is too strong",
        text=f"The generator fills {_right(case):.0%} of the gaps correctly, so only {share:.1%} "
        f"of the tokens are replaced, and the detector's loss ({now:.3f}) is that of one that "
        f"never looks ({blind:.3f}).",
        cure="Give the generator a quarter to a half of the model's width, or raise the masking "
        "rate.",
    )


def _detector(case: Case) -> Finding | None:
    """A detector that says "original" everywhere though the generator is no master."""
    seen = _finds_nothing(case, master=False)
    if seen is None:
        return None
    share, blind, now = seen
    tokens = int(case.records[-1].get("tokens") or 0)
    text = (
        f"{share:.1%} of the tokens are replaced, and the detector's loss ({now:.3f}) is that of "
        f"one that calls every token original and never looks ({blind:.3f})."
    )
    late = case.records[-1]["step"] >= 0.5 * case.steps or tokens >= _PATIENCE_TOKENS
    if not late and case.status.get("state") not in ("finished", "failed"):
        return Finding(
            kind="blind_detector",
            level="hint",
            title="It does not find the replaced pieces yet",
            text=text,
            cure="Wait. The detector learns once the generator puts in more than frequent pieces.",
        )
    return Finding(
        kind="blind_detector",
        level="problem",
        title="It does not find the replaced pieces",
        text=text,
        cure="Train for more steps, raise the learning rate by half with a warm-up, or give the "
        "detector's loss more weight (generator.weight).",
    )


def _finds(case: Case) -> Finding | None:
    seen = _blind(case)
    if seen is None or seen[2] > 0.8 * seen[1]:
        return None
    return Finding(
        kind="detects",
        level="good",
        title="It finds replaced pieces",
        text=f"The detector's loss is {seen[2]:.3f}; one that never looks and only knows that "
        f"{seen[0]:.1%} of the tokens are replaced would have {seen[1]:.3f}.",
    )


RULES = (_generator, _detector, _finds)
