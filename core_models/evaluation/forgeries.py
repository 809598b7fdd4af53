"""Replaced-token detection: how well a discriminator catches its generator."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core_models.errors import InputError, listed
from core_models.masking.tokens import uniform
from core_models.model import Model
from core_models.prediction import detect, forge
from core_models.prediction.fill import whole, within


@dataclass(frozen=True)
class ForgeryResult:
    """Figures over all tokens of a text."""

    tokens: int
    """Tokens judged, special ones left out."""
    replaced: float
    """Share of them that differ from the text."""
    auc: float
    """Chance that a replaced token gets a higher score than an original one, in 0..1."""
    accuracy: float
    """At probability 0.5; compare it with 1 - ``replaced``, which a model that trusts everything
    has."""
    found: float
    """Share of the replaced tokens above 0.5."""
    false_alarms: float
    """Share of the original tokens above 0.5."""
    generator_hits: float
    """Share of the hidden tokens for which the generator drew the original."""


_MOST_SEED = 2**63 - 1
FORGERY_SENTENCES = 400
"""Of a text, in which forgeries are made."""


def choose_sentences(sentences: Sequence[str], number: int) -> Sequence[str]:
    """Some evenly from the whole of a text: ``number``, or up to twice as many.

    A text may have its sources one behind the other, so that its beginning is of one kind.
    """
    return sentences[:: max(1, len(sentences) // number)]


def evaluate_forgeries(
    generator: Model,
    discriminator: Model,
    sentences: Sequence[str],
    *,
    rate: float = 0.15,
    seed: int = 0,
) -> ForgeryResult:
    """Hide tokens, let the generator draw others, and ask the discriminator about every token.

    Args:
        generator: In eval mode; its vocabulary is the discriminator's.
        discriminator: In eval mode, with a replaced-token head.
        sentences: Held-out text.
        rate: Share of tokens to hide in each sentence, at least one.
        seed: Of the hidden places and of the draws.

    Raises:
        InputError: Vocabularies differ, a value is out of range, a sentence has no piece, or no
            token was replaced.
    """
    if generator.tokenizer.fingerprint != discriminator.tokenizer.fingerprint:
        raise InputError("Generator and discriminator have different vocabularies.")
    if not within(rate, 0, 1) or not rate:
        raise InputError(f"rate is {rate!r}; it must be a number above 0 and at most 1.")
    random = torch.Generator().manual_seed(whole(seed, "seed", 0, _MOST_SEED))
    scores: list[float] = []
    labels: list[bool] = []
    hidden = lucky = 0
    tokenizer = generator.tokenizer
    for number, sentence in enumerate(listed(sentences, "sentences"), start=1):
        try:
            (encoding,) = generator.encode([sentence])
        except InputError as error:
            raise InputError(f"Sentence {number}: {error}") from None
        masked = uniform(
            torch.tensor(encoding.ids),
            ~torch.tensor(encoding.special),
            generator=random,
            mask_id=tokenizer.mask_id,
            vocabulary=tokenizer.vocabulary,
            rate=rate,
            split=(1.0, 0.0, 0.0),
        )
        places = (masked.labels >= 0).nonzero()[:, 0].tolist()
        forged = forge(generator, sentence, places, random=random)
        hidden += len(forged.samples)
        lucky += sum(sample.lucky for sample in forged.samples)
        replaced = {s.position: s.id for s in forged.samples if not s.lucky}
        for verdict in detect(discriminator, sentence, replaced=replaced).verdicts:
            if not verdict.special:
                scores.append(verdict.probability)
                labels.append(verdict.replaced)
    fakes = sum(labels)
    if not fakes or fakes == len(labels):
        raise InputError(
            f"{fakes} of {len(labels)} tokens were replaced; there must be some of both kinds. "
            "Use more text."
        )
    # Only here: scikit-learn takes a second to import, and every page imports this package.
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    above = [value > 0.5 for value in scores]
    found = sum(a and b for a, b in zip(above, labels, strict=True))
    alarms = sum(a and not b for a, b in zip(above, labels, strict=True))
    return ForgeryResult(
        tokens=len(labels),
        replaced=fakes / len(labels),
        auc=float(roc_auc_score(labels, scores)),
        accuracy=(found + len(labels) - fakes - alarms) / len(labels),
        found=found / fakes,
        false_alarms=alarms / (len(labels) - fakes),
        generator_hits=lucky / hidden,
    )
