"""The lines of Python under each view of the Attention tab.

``load`` is what ``cm.load`` takes for the model of the question.
"""

from collections.abc import Sequence

from app.labs.attention.scene import second_of
from app.serving.ask import Ask

Place = int | None


def opening(load: str, ask: Ask) -> list[str]:
    """Load the model, cut the sentence or the pair, apply the marks."""
    second = second_of(ask)
    text = f"({ask.text!r}, {second!r})" if second else repr(ask.text)
    lines = [
        "import core_models as cm",
        "",
        f"model = cm.load({load!r})",
        f"batch = model.batch([{text}])",
    ]
    masked = [mark.position for mark in ask.marks if mark.case == "mask"]
    if masked:
        lines.append(f"batch.input_ids[0, {masked}] = model.tokenizer.mask_id")
    return lines + [
        f"batch.input_ids[0, {mark.position}] = {mark.piece}"
        for mark in ask.marks
        if mark.case == "random"
    ]


def traced(load: str, ask: Ask, sites: Sequence[str] = ("probabilities",)) -> list[str]:
    """The opening and one traced pass."""
    listed = ", ".join(f'"{site}"' for site in sites)
    return [
        *opening(load, ask),
        f"trace = cm.Trace(sites=[{listed}])",
        "model.encoder(batch, trace=trace)",
    ]


def one_head(load: str, ask: Ask, layer: Place, head: Place) -> str:
    """The numbers of one head."""
    lines = traced(load, ask)
    if layer is None:
        lines.append(
            'weights = trace.stack("probabilities")[:, 0].mean((0, 1))  # [L, L], all heads'
        )
    elif head is None:
        lines.append(
            f'weights = trace["probabilities", {layer}][0].mean(0)  # [L, L], layer {layer + 1}'
        )
    else:
        comment = f"# [L, L], layer {layer + 1}, head {head + 1}"
        lines.append(f'weights = trace["probabilities", {layer}][0, {head}]  {comment}')
    return "\n".join(lines) + "\n"


def combined(load: str, ask: Ask, heads: Sequence[tuple[int, int]], how: str) -> str:
    """Several heads as one map."""
    return _join(
        "from core_models.prediction.attention_flow import combine",
        *traced(load, ask),
        'maps = trace.stack("probabilities")[:, 0].detach().numpy()  # [layers, H, L, L]',
        f"weights = combine(maps, {list(heads)}, {how!r})  # [L, L]",
    )


def rolled(load: str, ask: Ask, position: int, layers: int, *, flows: bool) -> str:
    """Rollout, and flow where the text is short."""
    lines = [
        f"from core_models.prediction.attention_flow import {'flow, ' if flows else ''}rollout",
        *traced(load, ask),
        f'maps = trace.stack("probabilities")[:{layers}, 0].detach().numpy()',
        f"rollout(maps)[:, {position}]  # [layers, L]: what the token is made of after each layer",
    ]
    if flows:
        lines.append(f"flow(maps, {position})  # [L]")
    return _join(*lines)


def rolled_whole(load: str, ask: Ask) -> str:
    """The rollout of every token after the last layer."""
    return _join(
        "from core_models.prediction.attention_flow import rollout",
        *traced(load, ask),
        'maps = trace.stack("probabilities")[:, 0].detach().numpy()',
        "weights = rollout(maps)[-1]  # [L, L]",
    )


def norms(load: str, ask: Ask, layer: int, head: Place) -> str:
    """Norms of what each key gives."""
    name = "layer_norms" if head is None else "head_norms"
    which = "" if head is None else f"[{head}]"
    return _join(
        f"from core_models.prediction.attention_flow import {name}, moved_values",
        *traced(load, ask, ("probabilities", "v")),
        f"output = model.encoder.output_weight({layer}).detach().numpy()",
        f'moved = moved_values(trace["v", {layer}][0].numpy(), output)  # [H, L, D]',
        f'norms = {name}(trace["probabilities", {layer}][0].numpy(), moved){which}  # [L, L]',
    )


def off(
    load: str,
    ask: Ask,
    heads: Sequence[tuple[int, int]],
    position: int,
    piece: int,
    *,
    shared: bool,
) -> str:
    """The prediction without some heads, and the damage of every single one."""
    second = second_of(ask)
    text = f"({ask.text!r}, {second!r})" if second else repr(ask.text)
    changes = {mark.position: mark.piece for mark in ask.marks if mark.piece is not None}
    masked = [mark.position for mark in ask.marks if mark.case == "mask"]
    return _join(
        "from core_models.prediction.ablation import damage, spread, without_heads",
        "from core_models.prediction.passes import seen_with",
        "import core_models as cm",
        "",
        f"model = cm.load({load!r})",
        f"changes = {changes} | dict.fromkeys({masked}, model.tokenizer.mask_id)",
        f"encoding = seen_with(model.encode([{text}])[0], changes)",
        f"heads = {f'spread(model.config, {list(heads)})' if shared else list(heads)}",
        f"before, after = without_heads(model, encoding, {position}, [[], heads]).exp()",
        f"before[{piece}], after[{piece}]  # probability of the word",
        f"damage(model, encoding, {position}, {piece}, shared={shared})  # [steps, H], nats gained",
    )


def products(load: str, ask: Ask, layer: int, head: int, query: int) -> str:
    """The products of one query with every key."""
    return _join(
        *traced(load, ask, ("q", "k", "content_score", "scores", "probabilities")),
        f'q, k = trace["q", {layer}][0, {head}, {query}], trace["k", {layer}][0, {head}]',
        "q * k  # [L, d]: one product for each dimension",
        f'trace["content_score", {layer}][0, {head}, {query}]  # [L]: their sums, scaled',
        f'trace["probabilities", {layer}][0, {head}, {query}]  # [L]',
    )


def visible(load: str, ask: Ask, window: int, order: Sequence[int]) -> str:
    """The masks of four ways of reading, and which layers have which."""
    second = second_of(ask)
    text = f"({ask.text!r}, {second!r})" if second else repr(ask.text)
    return _join(
        "from core_models.prediction.visibility_view import look_at_visibility, ways_of",
        "import core_models as cm",
        "",
        f"model = cm.load({load!r})",
        f"(encoding,) = model.encode([{text}])",
        f"order = {list(order)}",
        f"view = look_at_visibility(model, encoding, window={window}, order=order)",
        "for way, mask in view.masks.items(): print(way, mask.astype(int), sep='\\n')  # [L, L]",
        "ways_of(model.config)  # of each layer",
    )


def _join(*lines: str) -> str:
    """Lines of code with their imports first."""
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    rest = [line for line in lines if line not in imports]
    return "\n".join([*sorted(imports), *rest]) + "\n"
