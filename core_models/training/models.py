"""The models of a run: what is trained, what is trained with it, and what it learns from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from core_models.checkpoints.formats import BY_FAMILY
from core_models.checkpoints.own_fields import complete
from core_models.config import Config, Disentangled
from core_models.errors import InputError
from core_models.families import size
from core_models.joint import generator_config, new_generator
from core_models.model import Model, load
from core_models.network.embeddings import longest_input
from core_models.objectives import NEEDS, Objective, Options, Weighted, build
from core_models.tokenizer import Tokenizer
from core_models.training.plan import Plan
from core_models.training.settings import Settings, resolve_folder
from core_models.training.shape import build_config
from core_models.training.warm import take_encoder

GENERATOR = "generator"


@dataclass(frozen=True)
class Base:
    """Models whose weights a run begins with."""

    model: Model
    companions: Mapping[str, Model]


def base_of(settings: Settings, beside: Path) -> Base | None:
    """The checkpoint that the settings name, None for a fresh model.

    A folder ``generator`` beside that of the model is its generator, as a run leaves it.
    """
    if settings.model.checkpoint is None:
        return None
    name = resolve_folder(settings.model.checkpoint, beside)
    model = load(name)
    partner = Path(name).parent / GENERATOR
    known = Path(name).is_dir() and (partner / "config.json").is_file()
    return Base(model, {GENERATOR: load(partner)} if known else {})


def published_config(settings: Settings, base: Base | None) -> Config:
    """The size or the checkpoint that a plan is made for."""
    if base is not None:
        return base.model.config
    assert settings.model.size is not None
    return size(settings.model.size)


def model_config(
    settings: Settings, plan: Plan, base: Base | None, *, vocabulary: int, pad_id: int
) -> Config:
    """The config of the model to train; InputError where the examples do not fit into it."""
    config = build_config(settings, vocabulary, pad_id) if base is None else base.model.config
    config = _with_dropout(replace(config, objectives=heads_of(plan), task=None), settings)
    longest = longest_input(config)
    if longest is not None and longest < settings.data.max_length:
        raise InputError(
            f"data.max_length is {settings.data.max_length}, but the model has only {longest} "
            "positions."
        )
    _check_file(config)
    return config


def fresh_generator_config(settings: Settings, config: Config) -> Config:
    """The config of the model that fills masks for one of ``config``.

    Where the settings say nothing the proportions are the published ones.
    """
    wanted = settings.generator
    return generator_config(
        config,
        layers=wanted.layers,
        width=wanted.width,
        heads=wanted.heads,
        inner=wanted.inner,
    )


def _check_file(config: Config) -> None:
    """Raise InputError now, not at the first save, for a size that no file of the family holds."""
    plain = BY_FAMILY[config.family]
    form = plain.at(config)
    complete(plain, config, {"model_type": form.model_type, **form.write_config(config)})


def build_model(
    settings: Settings, plan: Plan, config: Config, tokenizer: Tokenizer, base: Base | None
) -> Model:
    """The model to train: fresh, or with the weights of ``base`` and fresh heads it lacks.

    A run that goes on has a base, too: what a fresh model begins with must not come back then.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    model = Model.new(config, tokenizer, heads=heads_of(plan), generator=generator)
    # Strict is off for the heads that a checkpoint may lack; they start fresh.
    if base is not None:
        model.load_state_dict(base.model.state_dict(), strict=False)
        return model
    if settings.model.position_waves is not None:
        model.encoder.embeddings.start_positions(settings.model.position_waves)
    if settings.model.encoder_from is not None:
        take_encoder(model, settings.model.encoder_from)
    return model


def heads_of(plan: Plan) -> tuple[str, ...]:
    """Heads that the objectives train; a saved model names them as what it was trained for."""
    return tuple(dict.fromkeys(NEEDS[name].head for name in plan.objectives))


def build_objective(
    settings: Settings, plan: Plan, model: Model, base: Base | None, beside: Path
) -> Objective:
    """All objectives with their weights; a generator shares the model's tables from here on."""
    distillation = settings.distillation
    options = Options(
        sharing=plan.sharing,
        temperature=settings.generator.temperature,
        leftward=plan.masking.leftward or 0.0,
        replaced_token_weight=settings.generator.weight,
    )
    if "replaced_token" in plan.objectives:
        options = replace(options, generator=_generator(settings, model, base))
    if distillation is not None:
        options = replace(
            options,
            teacher=load(resolve_folder(distillation.teacher, beside)),
            distillation_temperature=distillation.temperature,
        )
    return Weighted(
        [(weight, build(name, model, options)) for name, weight in plan.objectives.items()]
    )


def _generator(settings: Settings, model: Model, base: Base | None) -> Model:
    wanted = settings.generator
    known = None if base is None else base.companions.get(GENERATOR)
    if known is not None:
        config = _with_dropout(known.config, settings)
        made = Model(config, model.tokenizer, known.heads)
        made.load_state_dict(known.state_dict())
        return made
    config = fresh_generator_config(settings, model.config)
    terms, decoder = config.attention.terms, config.mask_decoder
    if decoder is not None and isinstance(terms, Disentangled):
        reach = min(decoder.positions, terms.span)  # as far as the relative positions
        config = replace(config, mask_decoder=replace(decoder, positions=reach))
    seed = torch.Generator().manual_seed(settings.seed + 4)
    made = new_generator(model, config, generator=seed)
    if wanted.encoder_from is not None:
        take_encoder(made, wanted.encoder_from)
    return made


def _with_dropout(config: Config, settings: Settings) -> Config:
    if settings.model.dropout is not None:
        config = config.with_dropout(settings.model.dropout)
    if settings.model.attention_dropout is not None:
        rate = settings.model.attention_dropout
        config = replace(config, attention=replace(config.attention, dropout=rate))
    return config
