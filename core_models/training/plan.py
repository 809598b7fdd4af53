"""What the settings come to for a model: values left open follow its family, and all must agree."""

from dataclasses import dataclass
from typing import get_args

from core_models.config import Config, Plain, TransformerXL, check_ours
from core_models.errors import InputError
from core_models.families import family
from core_models.training.data_schema import MaskingKind
from core_models.training.schema import Settings

_KINDS = {"permutation": "ordering", "similar": "similar_word", "none": "uniform"}
"""Names of a config's maskings that differ in the settings."""
_OWN = {"span_boundary": "span", "masked_diffusion": "diffusion"}
"""Maskings that objectives are published with."""
_LONGEST = {"ngram": 3, "windowed_ngram": 3, "span": 10, "ordering": 5, "similar_word": 4}
_FORMATS = {
    "next_sentence": "next_sentence",
    "sentence_order": "sentence_order",
    "permutation": "recurrent",
    "span_boundary": "single",
}
"""Formats that objectives are published with."""
_ALONE = {
    "permutation": "it reads text in another order",
    "causal": "it reads text from left to right",
    "replaced_token": "its generator learns masked tokens itself",
    "distillation": "it has a masked-token part of its own",
    "masked_diffusion": "it hides another share of each example",
    "masked_next_token": "it reads a part of each batch from left to right",
}
_PAIRS = ("next_sentence", "sentence_order")
_WITH_PAIRS = ("replaced_token", "distillation", "masked_diffusion")
_MEAN_SHARE = 0.5
"""What diffusion hides on average."""
_FIRST_SHARE = 0.85
_LEFTWARD = 1 / 16
"""The share that GPT-BERT reads from left to right (arXiv 2410.24159)."""


@dataclass(frozen=True, kw_only=True)
class MaskingPlan:
    """How tokens are chosen for prediction; see :mod:`~core_models.training.data_schema`."""

    kind: str
    rate: float
    last_rate: float
    split: tuple[float, float, float]
    longest: int
    dynamic: bool
    counting: str
    ordering: str
    leftward: float | None
    """Share of the examples that are read from left to right; None = none is."""

    def rate_at(self, step: int, steps: int) -> float:
        """Share that is predicted in the update that follows ``step`` finished ones of ``steps``.

        Moves from ``rate`` in the first update to ``last_rate`` in the last.
        """
        return self.rate + (self.last_rate - self.rate) * min(1.0, step / max(1, steps - 1))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The values of a run that depend on the family."""

    objectives: dict[str, float]
    """Objectives with their weights."""
    format: str
    """How documents become examples."""
    masking: MaskingPlan
    tokenizer: str
    """Kind of a vocabulary that is learnt."""
    lowercase: bool
    template: str
    """Where a tokenizer made for the run puts special pieces."""
    sharing: str
    """How a generator's piece table is shared."""
    reuse: int
    """Tokens of a recurrent segment that may be remembered."""
    memory: int
    """Tokens of earlier segments that the model sees; 0 = none."""
    both_directions: bool
    """Whether half of the recurrent rows read backwards, as distances with a sign allow."""

    @property
    def recurrent(self) -> bool:
        """Whether row i of a batch goes on in row i of the next one."""
        return self.format == "recurrent"

    @property
    def masks(self) -> bool:
        """Whether pieces are chosen for prediction at all."""
        return any(name in self.objectives for name in _MASKED)


_MASKED = (
    "masked_token",
    "masked_diffusion",
    "masked_next_token",
    "span_boundary",
    "permutation",
    "replaced_token",
    "distillation",
)


def plan_for(settings: Settings, config: Config) -> Plan:
    """Fill in what the settings leave open.

    Args:
        settings: A whole ``config.json``.
        config: The size or checkpoint that it names.

    Raises:
        InputError: Two values do not go together; the message says what to change.
    """
    check_ours(config)
    group = family(config.family)
    names = {str(name): weight for name, weight in (settings.objectives or {}).items()}
    names = names or dict.fromkeys(config.objectives, 1.0)
    data = settings.data
    default = next((form for name, form in _FORMATS.items() if name in names), "full_sentences")
    form = data.format or default
    recurrent = form == "recurrent"
    lowercase = settings.tokenizer.lowercase
    plan = Plan(
        objectives=names,
        format=form,
        masking=_masking(settings, config, names),
        tokenizer=settings.tokenizer.kind or group.tokenizer,
        lowercase=group.lowercase if lowercase is None else lowercase,
        template=group.template,
        sharing=settings.generator.sharing or group.sharing,
        reuse=data.max_length // 2 if data.reuse is None else data.reuse,
        memory=_memory(settings, config) if recurrent else 0,
        both_directions=isinstance(config.attention.terms, TransformerXL),
    )
    _check(settings, config, plan)
    return plan


def check(settings: Settings, config: Config) -> None:
    """Raise InputError where settings and model do not go together."""
    plan_for(settings, config)


def _masking(settings: Settings, config: Config, names: dict[str, float]) -> MaskingPlan:
    options, own = settings.masking, config.masking
    published = _KINDS.get(own.kind, own.kind)
    if published not in get_args(MaskingKind):
        raise InputError(f"The masking {own.kind!r} of {config.family} cannot be used in training.")
    if published == "ordering" and "permutation" not in names:
        published = "uniform"
    own_kind = next((_OWN[name] for name in names if name in _OWN), published)
    kind = str(options.kind or own_kind)
    same = kind == _KINDS.get(own.kind, own.kind)
    split = own.split if options.split is None else tuple(options.split)
    if options.split is None and not same:
        split = (_FIRST_SHARE, 0.0, 1 - _FIRST_SHARE) if kind == "with_replacement" else split
        split = (0.8, 0.1, 0.1) if own.kind == "permutation" else split
        split = (1.0, 0.0, 0.0) if kind == "diffusion" else split
    longest = own.longest if same else _LONGEST.get(kind, 1)
    rate = _MEAN_SHARE if kind == "diffusion" else own.rate
    rate = rate if options.rate is None else options.rate
    return MaskingPlan(
        kind=kind,
        rate=rate,
        last_rate=rate if options.last_rate is None else options.last_rate,
        split=(split[0], split[1], split[2]),
        longest=options.longest or longest,
        dynamic=own.dynamic if options.dynamic is None else options.dynamic,
        counting=options.counting,
        ordering=options.ordering,
        leftward=(options.leftward or _LEFTWARD) if "masked_next_token" in names else None,
    )


def _memory(settings: Settings, config: Config) -> int:
    if settings.data.memory is not None:
        return settings.data.memory
    if not isinstance(config.attention.terms, TransformerXL):
        return 0
    return settings.data.max_length * 3 // 4


def _check(settings: Settings, config: Config, plan: Plan) -> None:
    _check_objectives(settings, config, plan)
    _check_masking(settings, plan)
    _check_data(settings, config, plan)


def _check_objectives(settings: Settings, config: Config, plan: Plan) -> None:
    names = plan.objectives
    for name, reason in _ALONE.items():
        friends = _PAIRS if name in _WITH_PAIRS else ()
        others = [other for other in names if other != name and other not in friends]
        if name in names and others:
            raise InputError(
                f"objectives: {name} cannot be combined with {others[0]}, because {reason}."
            )
    if "permutation" in names and not config.query_stream:
        raise InputError(
            f"objectives: permutation needs a family with a query stream (xlnet); "
            f"{config.family} has none."
        )
    if config.query_stream and "permutation" not in names and "causal" not in names:
        raise InputError(
            f"objectives: {config.family} answers in a query stream; use permutation, "
            f"not {next(iter(names))}."
        )
    simple = isinstance(config.attention.terms, Plain) and config.mask_decoder is None
    if "causal" in names and not simple:
        raise InputError(
            f"objectives: causal needs plain attention; {config.family} scores distances in both "
            "directions."
        )
    if "causal" not in names and config.attention.direction == "left":
        raise InputError(
            f"objectives: the model reads from left to right, so it can be trained with causal "
            f"only, not with {next(iter(names))}."
        )
    if "masked_next_token" in names and config.mask_decoder is not None:
        raise InputError(
            f"objectives: masked_next_token answers from the position before; {config.family} "
            "answers in a mask decoder."
        )
    if "distillation" in names and settings.distillation is None:
        raise InputError("objectives: distillation needs distillation.teacher, a model to learn of")
    if settings.distillation is not None and "distillation" not in names:
        raise InputError("distillation: give it a weight in objectives, or leave the part out")
    if "generator" in settings.model_fields_set and "replaced_token" not in names:
        raise InputError("generator: only the objective replaced_token has one; leave it out")


def _check_masking(settings: Settings, plan: Plan) -> None:
    masking, names = plan.masking, plan.objectives
    if "span_boundary" in names and masking.kind != "span":
        raise InputError(
            f"objectives: span_boundary needs masking.kind span, not {masking.kind}, "
            "because it predicts spans from what surrounds them."
        )
    if ("permutation" in names) != (masking.kind == "ordering"):
        raise InputError(
            f"masking.kind: permutation and ordering belong together; objectives are "
            f"{', '.join(names)} and masking.kind is {masking.kind}."
        )
    if ("masked_diffusion" in names) != (masking.kind == "diffusion"):
        raise InputError(
            f"masking.kind: masked_diffusion and diffusion belong together; objectives are "
            f"{', '.join(names)} and masking.kind is {masking.kind}."
        )
    if masking.kind == "diffusion" and (
        {masking.rate, masking.last_rate} != {_MEAN_SHARE} or masking.split != (1.0, 0.0, 0.0)
    ):
        raise InputError(
            "masking: diffusion hides a share between 0 and 1 that is drawn for each example, all "
            "of it behind the mask piece; leave masking.rate, last_rate and split out."
        )
    _check_next(settings, plan)
    if masking.kind == "with_replacement" and masking.split[1] > 0:
        raise InputError(
            f"masking.split: with_replacement puts in no random pieces; the second share must be "
            f"0, not {masking.split[1]:g} (ELECTRA: [0.85, 0, 0.15])."
        )
    if masking.counting == "fairseq" and masking.kind not in ("uniform", "whole_word"):
        raise InputError(
            f"masking.counting: fairseq counts for uniform and whole_word only, "
            f"not for {masking.kind}."
        )
    if masking.last_rate != masking.rate and not masking.dynamic:
        raise InputError(
            "masking.last_rate: what is hidden is drawn once here, so its share cannot change; set "
            "masking.dynamic to true, or leave it out."
        )
    if not plan.masks and "kind" in settings.masking.model_fields_set:
        raise InputError(f"masking: {', '.join(names)} hides no tokens; leave the part out")


def _check_next(settings: Settings, plan: Plan) -> None:
    if "masked_next_token" not in plan.objectives:
        if settings.masking.leftward is not None:
            raise InputError(
                "masking.leftward: only the objective masked_next_token reads a part of each batch "
                "from left to right; leave it out."
            )
    elif plan.masking.kind == "with_replacement":
        raise InputError(
            "objectives: masked_next_token counts each hidden piece once; masking.kind cannot be "
            "with_replacement."
        )


def _check_data(settings: Settings, config: Config, plan: Plan) -> None:
    data, names = settings.data, plan.objectives
    for name in _PAIRS:
        if name in names and plan.format != name:
            raise InputError(
                f"objectives: {name} needs data.format {name}, which labels its pairs, "
                f"not {plan.format}."
            )
        if name in names and data.singles == 1.0:
            raise InputError(f"{name} needs pairs: data.singles must be below 1")
    if plan.recurrent:
        _check_recurrent(settings, config, plan)
    elif data.memory or data.reuse:
        raise InputError(
            f"data.memory and data.reuse belong to format recurrent, not {plan.format}"
        )
    overrides = settings.model.overrides
    absolute = config.embeddings.positions is not None or config.mask_decoder is not None
    if (
        overrides.positions is not None
        and not absolute
        and isinstance(config.attention.terms, TransformerXL)
    ):
        raise InputError(
            f"model.overrides.positions: {config.family} has no table of positions; leave it out."
        )


def _check_recurrent(settings: Settings, config: Config, plan: Plan) -> None:
    data = settings.data
    if data.singles:
        raise InputError("data.singles: recurrent segments are never single; use 0")
    if data.first_length is not None:
        raise InputError("data.first_length: recurrent segments have one length; leave it out")
    if data.first_batch is not None:
        raise InputError("data.first_batch: recurrent segments keep their rows; leave it out")
    if plan.reuse > data.max_length - 4:
        raise InputError(
            f"data.reuse ({plan.reuse}) leaves no room for a second text in data.max_length "
            f"({data.max_length})."
        )
    if plan.masking.kind == "ordering" and plan.masking.ordering == "paper":
        raise InputError(
            "masking.ordering: paper orders whole rows, which recurrent segments are not; take "
            "released, or data.format full_sentences."
        )
    if plan.both_directions and settings.batch_size % 2:
        raise InputError(
            f"batch_size ({settings.batch_size}) must be even: half of the rows of recurrent "
            "segments read backwards."
        )
    if plan.memory and not isinstance(config.attention.terms, TransformerXL):
        raise InputError(
            f"data.memory: {config.family} cannot see earlier segments; use 0, or an XLNet."
        )
    if plan.memory and settings.accumulation > 1 and settings.batch_size % settings.accumulation:
        raise InputError(
            f"accumulation ({settings.accumulation}) must divide batch_size "
            f"({settings.batch_size}) where a memory goes from batch to batch."
        )
