"""The prediction for one gap after every layer, through the model's own head.

Reading intermediate layers with the last layer's head is known as the logit lens. The head was
trained on the last layer alone: that a word ranks low early does not mean that the model "does not
know it yet", only that the head cannot read it there.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from core_models.errors import listed
from core_models.model import Model
from core_models.network.trace import Trace
from core_models.prediction.fill import Question, read_rows, whole
from core_models.prediction.passes import KINDS, head_name, head_of, hidden_at
from core_models.prediction.results import FillRequest, Layer, LensResult

NOTES = {
    "mask_decoder": "This model's head reads its mask decoder, which runs the last layer again and "
    "starts from absolute positions. The layers themselves are read past it: the head never learnt "
    "from them, so they are no predictions of this model.",
    "query": "XLNet predicts from its query stream, which starts from one vector that is the same "
    "at every position: before the first layer it knows nothing of the sentence.",
    "causal": "Every layer is read at the position before the gap, which this model predicts from.",
}


def lens(
    model: Model,
    text: str,
    position: int,
    *,
    masks: Sequence[int] = (),
    watch: Sequence[str | int] = (),
    top_k: int = 3,
) -> LensResult:
    """What the head makes of one position before the first step and after each.

    Args:
        model: In eval mode, with a head that predicts pieces.
        text: The sentence; every [MASK] in it is hidden.
        position: The gap to look at (piece number, [CLS] is 0).
        masks: Further positions that the model does not see.
        watch: Words of one piece, or ids, whose rank is wanted after every layer.
        top_k: Best pieces of each layer.

    Returns:
        N + 1 layers for a model of N steps, and those of its mask decoder where it has one.

    Raises:
        InputError: A value is out of range, or the model predicts no pieces.
    """
    head = head_of(model)
    whole(position, "A position", 0, model.longest - 1)
    others = [p for p in listed(masks, "masks") if p != position]
    question = Question(model, FillRequest(text, [position, *others], top_k, watch))
    kind = KINDS[head_name(model)]
    trace = Trace(["residual_in", "residual"])
    with torch.inference_mode():
        final = hidden_at(model, [question.seen], [(0, position)], trace)
        rows = _rows(trace, kind, position)
        states = torch.stack([_read(model, row) for row in rows[:-1]] + [final[0]])
        logs = head(states).float().log_softmax(-1)
        found = read_rows(model.tokenizer, [(question, position)] * len(rows), logs)
    note = "mask_decoder" if model.config.mask_decoder else {"order": "query"}.get(kind, kind)
    return LensResult(
        text=text,
        head=head_name(model),
        layers=[
            Layer(stream, number, prediction)
            for (stream, number, _), prediction in zip(rows, found, strict=True)
        ],
        note=NOTES.get(note),
    )


def _read(model: Model, row: tuple[str, int, Tensor]) -> Tensor:
    """What the head is given of a state [D]: behind the last norm, where norms come before."""
    stream, _, state = row
    normed: Tensor = model.encoder.final_norm(state) if stream == "content" else state
    return normed


def _rows(trace: Trace, kind: str, position: int) -> list[tuple[str, int, Tensor]]:
    """Stream, number and state [D] of each reading."""
    stream = "query" if kind == "order" else "content"
    # The query stream holds the one place that was asked for.
    column = {"masked": position, "causal": position - 1, "order": 0}[kind]
    steps = trace.recorded_steps("residual", stream)
    # What a block starts from, not what the one before it gave: between them lies DeBERTa v2's
    # convolution.
    rows = [(stream, n, trace.get("residual_in", n, stream)[0, column]) for n in steps]
    rows.append((stream, len(steps), trace.get("residual", steps[-1], stream)[0, column]))
    rows += [
        ("mask_decoder", n + 1, trace.get("residual", n, "mask_decoder")[0, column])
        for n in trace.recorded_steps("residual", "mask_decoder")
    ]
    return rows
