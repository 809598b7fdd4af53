"""Objectives by name, and what each of them needs."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from core_models.errors import InputError
from core_models.model import Model
from core_models.objectives.base import Objective
from core_models.objectives.causal import Causal
from core_models.objectives.distillation import Distillation
from core_models.objectives.masked_diffusion import MaskedDiffusion
from core_models.objectives.masked_next_token import MaskedNextToken
from core_models.objectives.masked_token import MaskedToken
from core_models.objectives.pair import NextSentence, SentenceOrder
from core_models.objectives.permutation import Permutation
from core_models.objectives.replaced_token import ReplacedToken
from core_models.objectives.span_boundary import SpanBoundary


@dataclass(frozen=True, kw_only=True)
class Options:
    """Values and further models of objectives; most need none of them."""

    generator: Model | None = None
    """Fills masked tokens for the replaced-token objective, and is trained with it."""
    sharing: str = "tied"
    """How the generator's embedding block is shared: one of ``joint.SHARINGS``."""
    temperature: float = 1.0
    """Of the distribution that the generator's pieces are sampled from."""
    replaced_token_weight: float = 50.0
    """Weight of the discriminator's loss beside the generator's (arXiv 2003.10555; the released
    code of DeBERTa v3 has 10)."""
    leftward: float = 1 / 16
    """Share of the rows that masked_next_token reads from left to right."""
    teacher: Model | None = None
    """What a distilled model imitates; not trained."""
    distillation_temperature: float = 2.0
    distillation_weights: tuple[float, float, float] = (5.0, 2.0, 1.0)
    """Weights of soft targets, masked tokens and hidden states."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What an objective asks of the model, the data and the trainer."""

    head: str
    """Head of the model that it trains."""
    fields: tuple[str, ...]
    """Fields of :class:`~core_models.batch.Batch` that must be filled."""
    other: str | None = None
    """Field of :class:`Options` that must hold a further model: ``generator`` or ``teacher``."""


NEEDS: dict[str, Needs] = {
    "masked_token": Needs(head="masked_token", fields=("labels",)),
    "masked_diffusion": Needs(head="masked_token", fields=("labels", "label_weights")),
    "masked_next_token": Needs(head="causal", fields=("labels", "visibility")),
    "next_sentence": Needs(head="next_sentence", fields=("pair_labels",)),
    "sentence_order": Needs(head="sentence_order", fields=("pair_labels",)),
    "span_boundary": Needs(head="span_boundary", fields=("boundaries", "boundary_labels")),
    "permutation": Needs(
        head="permutation", fields=("visibility", "targets", "target_visibility", "target_labels")
    ),
    "replaced_token": Needs(head="replaced_token", fields=("labels", "draws"), other="generator"),
    "causal": Needs(head="causal", fields=()),
    "distillation": Needs(head="masked_token", fields=("labels",), other="teacher"),
}
"""By name of the objective."""


def build(name: str, model: Model, options: Options | None = None) -> Objective:
    """The objective of a name over the model's head.

    Raises:
        InputError: no such objective; the model lacks the head; a further model is missing or
            does not fit.
    """
    if name not in NEEDS:
        raise InputError(f"No objective {name!r}; known are {', '.join(NEEDS)}.")
    options = options or Options()
    needs = NEEDS[name]
    if needs.head not in model.heads:
        present = ", ".join(model.heads) or "none"
        raise InputError(f"{name} trains the head {needs.head!r}; the model has {present}.")
    if needs.other is not None and getattr(options, needs.other) is None:
        raise InputError(f"{name} needs a {needs.other}; give one as Options.{needs.other}.")
    return _BUILDERS[name](model, model.heads[needs.head], options)


def _replaced_token(model: Model, head: nn.Module, options: Options) -> Objective:
    assert options.generator is not None
    return ReplacedToken(
        model,
        options.generator,
        sharing=options.sharing,
        temperature=options.temperature,
        weight=options.replaced_token_weight,
    )


def _distillation(model: Model, head: nn.Module, options: Options) -> Objective:
    assert options.teacher is not None
    return Distillation(
        model,
        options.teacher,
        temperature=options.distillation_temperature,
        weights=options.distillation_weights,
    )


_BUILDERS: dict[str, Callable[[Model, nn.Module, Options], Objective]] = {
    "masked_token": lambda model, head, _: MaskedToken(head),
    "masked_diffusion": lambda model, head, _: MaskedDiffusion(head),
    "masked_next_token": lambda model, head, options: MaskedNextToken(head, options.leftward),
    "next_sentence": lambda model, head, _: NextSentence(head),
    "sentence_order": lambda model, head, _: SentenceOrder(head),
    "span_boundary": lambda model, head, _: SpanBoundary(head),
    "permutation": lambda model, head, _: Permutation(head),
    "replaced_token": _replaced_token,
    "causal": lambda model, head, _: Causal(model.config, head),
    "distillation": _distillation,
}
