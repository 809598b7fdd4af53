"""The models of a run: what is trained, what is trained with it, and what it learns from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from core_models.checkpoints.files import check_savable
from core_models.checkpoints.formats import BY_FAMILY
from core_models.checkpoints.table import Format
from core_models.config import Config, Disentangled
from core_models.errors import InputError
from core_models.families import size
from core_models.joint import generator_config, new_generator
from core_models.model import Model, load
from core_models.network.embeddings import longest_input
from core_models.network.initialise import without_values
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
    _check_heads(config, plan)
    _check_file(config, heads_of(plan))
    if "replaced_token" in plan.objectives and (base is None or GENERATOR not in base.companions):
        try:
            _check_file(fresh_generator_config(settings, config), ("masked_token",))
        except InputError as error:
            raise InputError(f"The generator of this run could not be saved. {error}") from None
    return config


def fresh_generator_config(settings: Settings, config: Config) -> Config:
    """The config of the model that fills masks for one of ``config``.

    Where the settings say nothing the proportions are the published ones.
    """
    wanted = settings.generator
    made = generator_config(
        config,
        layers=wanted.layers,
        width=wanted.width,
        heads=wanted.heads,
        inner=wanted.inner,
    )
    terms, decoder = made.attention.terms, made.mask_decoder
    if decoder is not None and isinstance(terms, Disentangled):
        reach = min(decoder.positions, terms.span)  # as far as the relative positions
        made = replace(made, mask_decoder=replace(decoder, positions=reach))
    return made


def _check_heads(config: Config, plan: Plan) -> None:
    """Raise InputError for an objective whose head no file of the family holds."""
    family = config.family
    own = BY_FAMILY[family].at(config)
    for name in plan.objectives:
        head = NEEDS[name].head
        if not _holds(own, head):
            able = [known for known, form in BY_FAMILY.items() if _holds(form, head)]
            raise InputError(
                f"The objective {name} cannot be trained in the family {family}: its files have no "
                f"place for the head, so the model could not be saved. Families that have one: "
                f"{', '.join(able)}."
            )


def _holds(form: Format, head: str) -> bool:
    return any(row.ours.startswith(f"heads.{head}.") for row in form.rows)


def _check_file(config: Config, heads: Sequence[str]) -> None:
    """Raise InputError now, not at the first save, for a model that no file of the family holds."""
    with without_values():
        check_savable(Model(config, None, heads), BY_FAMILY[config.family], config)


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
        teacher = load(resolve_folder(distillation.teacher, beside))
        longest = longest_input(teacher.config)
        if longest is not None and longest < settings.data.max_length:
            raise InputError(
                f"data.max_length is {settings.data.max_length}, but distillation.teacher has only "
                f"{longest} positions."
            )
        options = replace(
            options,
            teacher=teacher,
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
