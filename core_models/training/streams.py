"""A run's batches: single examples in random order, or segments that continue each other."""

import numpy as np
import torch

from core_models.config import Config
from core_models.data.recurrent import Recurrent
from core_models.data.store import TokenStore
from core_models.training.examples import Examples, Masker
from core_models.training.feed import Changed, Continued, Shuffled, Stream
from core_models.training.folder import RunFolder
from core_models.training.models import Base, model_config, published_config
from core_models.training.plan import plan_for
from core_models.training.prepare import Prepared, prepare
from core_models.training.settings import Settings
from core_models.training.validation import Validation

_AGAIN = 7919  # keeps a second reading apart from the first; a CPU generator takes 32 bits alone


def open_data(
    run: RunFolder, settings: Settings, base: Base | None
) -> tuple[Prepared, Masker, Config]:
    """The run's data, made where it is missing; what hides pieces of it; the model's config.

    Raises:
        InputError: the settings or the data cannot be used.
    """
    plan = plan_for(settings, published_config(settings, base))
    data = prepare(run, settings, plan, None if base is None else base.model.tokenizer)
    words = data.tokenizer
    config = model_config(settings, plan, base, vocabulary=words.vocabulary, pad_id=words.pad_id)
    return data, Masker(plan, config, words, data.similar), config


def open_stream(data: Prepared, masker: Masker, settings: Settings, device: torch.device) -> Stream:
    """The training batches from the first one on.

    Raises:
        InputError: there is too little text for the batch size.
    """
    if masker.plan.recurrent:
        examples = Examples(data.training, masker, settings.seed)
        segments = _segments(data.training, masker, settings, settings.batch_size)
        return Continued(segments, examples, seed=settings.seed, steps=settings.steps)

    def shuffled(store: TokenStore, batch_size: int, before: int = 0, apart: int = 0) -> Shuffled:
        return Shuffled(
            Examples(store, masker, settings.seed),
            batch_size=batch_size,
            bucketing=settings.data.bucketing,
            seed=settings.seed + apart,
            device=device,
            steps=settings.steps,
            even=settings.data.even,
            before=before,
        )

    first = settings.first_steps
    if not first:
        return shuffled(data.training, settings.batch_size)
    # Not in the order in which the first steps have read the same examples.
    apart = _AGAIN if data.early is data.training else 0
    later = shuffled(data.training, settings.batch_size, first, apart)
    return Changed(shuffled(data.early, settings.first_batch), later, steps=first)


def open_validation(
    store: TokenStore | None, masker: Masker, settings: Settings
) -> Validation | None:
    """The held-out batches; None where there are none, or too little for recurrent segments."""
    if store is None:
        return None
    examples = Examples(store, masker, settings.seed)
    if not masker.plan.recurrent:
        return Validation(examples, batch_size=settings.batch_size)
    # Held-out text is short: as many rows as it fills, special pieces not counted.
    parts = np.asarray(store.places.rows[:, :2])
    streams = int((parts[:, 1] - parts[:, 0]).sum()) // settings.data.max_length
    rows = 2 * streams if masker.plan.both_directions else streams
    rows = min(rows, settings.batch_size)
    if not rows:
        return None
    segments = _segments(store, masker, settings, rows)
    return Validation(examples, batch_size=rows, segments=segments)


def _segments(store: TokenStore, masker: Masker, settings: Settings, rows: int) -> Recurrent:
    return Recurrent(
        store,
        batch_size=rows,
        length=settings.data.max_length,
        reuse=masker.plan.reuse,
        seed=settings.seed,
        both_directions=masker.plan.both_directions,
    )
