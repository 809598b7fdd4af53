"""What a step of an entrant of a race costs, by its settings alone."""

from dataclasses import dataclass

from core_models.config import Config
from core_models.counting.counts import count
from core_models.training.models import fresh_generator_config
from core_models.training.plan import Plan
from core_models.training.settings import Settings

_SELECTED = ("masked_token", "span_boundary", "permutation")
"""Heads that are applied to the predicted tokens only."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Size of an entrant, and what a step of its training costs on average."""

    family: str
    objectives: dict[str, float]
    format: str
    parameters: int
    """Of the model with its pretraining heads."""
    generator_parameters: int
    """0 = it has no generator."""
    length: int
    """Mean length of an example in tokens."""
    flops_per_step: float
    """Forward and backward pass of a batch, generator included."""


def cost_of(settings: Settings, config: Config, plan: Plan, length: int) -> Cost:
    """Count what training with examples of ``length`` tokens takes.

    Operations are those of :mod:`core_models.counting.flops`, three times the forward pass, with
    heads that read predicted tokens counted for these only. Left out, as there: XLNet's query
    stream and the memory that it attends to.
    """
    generator = None
    if "replaced_token" in plan.objectives:
        generator = fresh_generator_config(settings, config)
    each = [config] if generator is None else [config, generator]
    return Cost(
        family=config.family,
        objectives=plan.objectives,
        format=plan.format,
        parameters=count(config).trained,
        generator_parameters=0 if generator is None else count(generator).trained,
        length=length,
        flops_per_step=settings.batch_size * sum(_training(one, length, plan) for one in each),
    )


def _training(config: Config, length: int, plan: Plan) -> float:
    """Operations of one example, forward and backward."""
    parts = count(config).flops(length)
    predicted = (plan.masking.rate + plan.masking.last_rate) / 2
    shares = dict.fromkeys(_SELECTED, predicted)
    if plan.masking.leftward is not None:  # only these rows are asked everywhere
        shares["causal"] = predicted + plan.masking.leftward * (1 - predicted)
    heads = sum(value * shares.get(name, 1.0) for name, value in parts.heads.items())
    return 3 * (parts.encoder + parts.mask_decoder + heads)
