"""Fields of ours in config.json for what transformers' fields cannot tell.

A checkpoint's masking and objectives are written where they are not its family's, its task where
its class and labels do not tell it, and the dropout of attention where the file has one rate for
all (XLNet). transformers keeps and ignores all of them. What neither its fields nor these can tell
is an error before anything is written.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints.fields import Fields, check_spelling
from core_models.checkpoints.table import FAMILY_FIELD, Format
from core_models.checkpoints.tasks import TASK_FIELD
from core_models.config import Config, Masking, diff
from core_models.config.values import from_json, to_json
from core_models.errors import InputError
from core_models.heads.pretraining import HEADS

PREFIX = "cloze_"
MASKING = "cloze_masking"
OBJECTIVES = "cloze_objectives"
STEPS = "cloze_mask_decoder_steps"
ATTENTION_DROPOUT = "cloze_attention_dropout"
KNOWN = (FAMILY_FIELD, MASKING, OBJECTIVES, STEPS, TASK_FIELD, ATTENTION_DROPOUT)


def with_own_fields(form: Format) -> Format:
    """The format whose ``read_config`` also heeds these fields."""

    def read_config(values: Mapping[str, Any]) -> Config:
        unknown = sorted(k for k in values if k.startswith(PREFIX) and k not in KNOWN)
        if unknown:
            raise InputError(
                f"config.json has the field {unknown[0]!r}, which is not known; "
                f"fields that start so are {', '.join(KNOWN)}."
            )
        check_spelling(values, {*form.fields, *KNOWN})
        config = form.read_config(values)
        changes: dict[str, Any] = {"task": form.tasks.read(values)}
        if config.attention.direction == "left":
            changes |= {"objectives": ("causal",), "masking": Masking(kind="none")}
        if MASKING in values:
            changes["masking"] = from_json(Masking, values[MASKING], f"config.json: {MASKING}")
        if OBJECTIVES in values:
            names = from_json(tuple[str, ...], values[OBJECTIVES], f"config.json: {OBJECTIVES}")
            changes["objectives"] = _known_objectives(names)
        if ATTENTION_DROPOUT in values:
            rate = Fields(values).number(ATTENTION_DROPOUT, 0, 1)
            changes["attention"] = replace(config.attention, dropout=rate)
        return replace(config, **changes)

    return replace(form, read_config=read_config)


def complete(form: Format, config: Config, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a config.json must also hold so that it is read back as ``config``.

    Args:
        form: of :data:`~core_models.checkpoints.formats.BY_FAMILY`.
        config: the model's.
        values: config.json but for these fields.

    Raises:
        InputError: no config.json of this format gives ``config``; names the value.
    """
    result: dict[str, Any] = {}
    if config.task is not None:
        result |= form.tasks.write(config.task, config)
        result |= form.tasks.kept(config.task, {**values, **result})
    plain = _read(form, {**values, **result})
    if plain.attention.dropout != config.attention.dropout:
        result[ATTENTION_DROPOUT] = config.attention.dropout
    if plain.masking != config.masking:
        result[MASKING] = to_json(config.masking)
    if plain.objectives != config.objectives:
        result[OBJECTIVES] = list(config.objectives)
    for lost in diff(config, _read(form, {**values, **result})):
        raise InputError(
            f"{lost.path} is {lost.left!r}, which files of type {form.model_type} cannot hold: it "
            f"would be read back as {lost.right!r}. Build the model with that value to save it."
        )
    return result


def _read(form: Format, values: Mapping[str, Any]) -> Config:
    """What will be read of ``values`` once they are a file."""
    try:
        return form.read_config(json.loads(json.dumps(values)))
    except InputError as error:
        raise InputError(
            f"This config cannot be saved as {form.model_type}, for the file would be refused: "
            f"{error}"
        ) from None


def _known_objectives(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in HEADS:
            raise InputError(
                f"config.json: {OBJECTIVES} names {name!r}; known are {', '.join(HEADS)}."
            )
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"config.json: {OBJECTIVES} must name at least one objective, each once; "
            f"it has {list(names)}."
        )
    return names
