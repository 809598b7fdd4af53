"""Claims about encoders of 2019 to 2025: DistilBERT, ModernBERT, mmBERT, EuroBERT.

No Gradio in it.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

import core_models as cm
from app.claims.bench import Bench, moved, percent, random_model, shrunk
from app.claims.card import Claim, Number, Rule, Values, Verdict, at_most, near
from core_models.batch import Batch
from core_models.network.initialise import without_values
from viz.svg import Wording

WINDOW, LAYERS, LENGTH, SHIFT = 2, 6, 24, 11
OPERATIONS = 512
"""Tokens of a text whose operations are counted."""


def _parameters(name: str, key: str) -> Number:
    label = Wording("parameters of {0}", name)
    return Number(key=key, label=label, value=cm.count(name).base / 1e6, unit="million")


def _distilled(bench: Bench) -> Sequence[Number]:
    names = ("bert-base-uncased", "distilbert-base-uncased")
    whole, part = (cm.count(name).base for name in names)
    return [
        _parameters(names[0], "bert"),
        _parameters(names[1], "distil"),
        Number(
            key="fewer",
            label=Wording("fewer parameters"),
            value=percent(whole - part, whole),
            unit="%",
        ),
    ]


def _table_or_layers(bench: Bench) -> Sequence[Number]:
    names = ("modernbert-base", "mmbert-small")
    large, small = (cm.count(name) for name in names)
    work = [count.flops(OPERATIONS).encoder for count in (large, small)]
    return [
        _parameters(names[0], "large"),
        _parameters(names[1], "small"),
        Number(
            key="table",
            label=Wording("of mmBERT small in its piece table"),
            value=percent(small.pieces, small.base),
            unit="%",
        ),
        Number(
            key="ratio",
            label=Wording("times more operations in ModernBERT base"),
            value=work[0] / work[1],
            unit="times",
        ),
    ]


def _reached(bench: Bench, kinds: tuple[str, ...], steps: int, other: int) -> float:
    """How far another piece moves the first token's state, in percent."""
    config = shrunk("modernbert-base", layers=LAYERS)
    attention = replace(config.attention, window=WINDOW)
    model = random_model(replace(config, attention=attention, layer_kinds=kinds), bench.seed, ())
    ids = bench.ids(1, LENGTH)
    changed = ids.clone()
    changed[0, other] = (ids[0, other] + 1) % config.embeddings.vocabulary
    first, second = (
        model.encoder(Batch(input_ids=given), every_step=True).states[steps][0, 0]
        for given in (ids, changed)
    )
    return moved(first, second)


def _window(bench: Bench) -> Sequence[Number]:
    """A piece two windows away, and the last one of the text."""
    far, last = 2 * WINDOW, LENGTH - 1
    local, mixed = ("local",), ("global", "local", "local")
    with torch.inference_mode():
        return [
            Number(
                key="one",
                label=Wording("two windows away, after one local layer"),
                value=_reached(bench, local, 1, far),
                unit="%",
            ),
            Number(
                key="two",
                label=Wording("two windows away, after two local layers"),
                value=_reached(bench, local, 2, far),
                unit="%",
            ),
            Number(
                key="whole",
                label=Wording("at the end of the text, after all layers of ModernBERT"),
                value=_reached(bench, mixed, LAYERS, last),
                unit="%",
            ),
        ]


def _shifted(model: cm.Model, ids: Tensor) -> float:
    """How far the states of a text move when padding stands before it, in percent."""
    before = torch.zeros(1, SHIFT, dtype=torch.long)
    mask = torch.cat([before, torch.ones_like(ids)], 1).bool()
    padded = Batch(input_ids=torch.cat([before, ids], 1), attention_mask=mask)
    plain = model.encoder(Batch(input_ids=ids)).hidden[0]
    return moved(plain, model.encoder(padded).hidden[0, SHIFT:])


def _places(bench: Bench) -> Sequence[Number]:
    ids = bench.ids(1, LENGTH)
    with torch.inference_mode():
        found = {
            key: _shifted(random_model(shrunk(name), bench.seed, ()), ids)
            for key, name in (("modern", "modernbert-base"), ("bert", "bert-base-uncased"))
        }
    return [
        Number(
            key="modern",
            label=Wording("states of ModernBERT moved"),
            value=found["modern"],
            unit="%",
        ),
        Number(
            key="bert",
            label=Wording("control: states of BERT moved"),
            value=found["bert"],
            unit="%",
        ),
    ]


def _as_before(values: Values) -> Verdict:
    if values["bert"] < 1:
        return "depends"
    return "right" if values["modern"] <= 0.1 else "half" if values["modern"] <= 1 else "wrong"


def _biases(bench: Bench) -> Sequence[Number]:
    with without_values():
        config = cm.size("modernbert-base")
        encoder = cm.Encoder(config)
        bert = cm.Encoder(cm.size("bert-base-uncased"))
    counts = [
        sum(p.numel() for name, p in module.named_parameters() if name.endswith("bias"))
        for module in (encoder, bert)
    ]
    scores = config.embeddings.vocabulary if config.score_bias else 0
    return [
        Number(key="encoder", label=Wording("biases in its encoder"), value=counts[0]),
        Number(key="scores", label=Wording("biases of its vocabulary scores"), value=scores),
        Number(key="bert", label=Wording("biases in BERT's encoder"), value=counts[1]),
    ]


def _none_left(values: Values) -> Verdict:
    if values["encoder"] > 0:
        return "wrong"
    return "half" if values["scores"] > 0 else "right"


def _named(bench: Bench) -> Sequence[Number]:
    found = cm.count("eurobert-210m")
    return [
        Number(
            key="file",
            label=Wording("in its file"),
            value=found.pretraining / 1e6,
            unit="million",
        ),
        Number(
            key="encoder",
            label=Wording("in its encoder"),
            value=found.encoder / 1e6,
            unit="million",
        ),
        Number(
            key="scores",
            label=Wording("in the layer that scores the vocabulary"),
            value=found.heads["masked_token"] / 1e6,
            unit="million",
        ),
    ]


def _groups(bench: Bench) -> Sequence[Number]:
    grouped = cm.size("eurobert-610m")
    whole = replace(grouped, attention=replace(grouped.attention, key_heads=None))
    costs = [cm.count(config).flops(OPERATIONS) for config in (whole, grouped)]
    alone, work = (
        [flops.attention for flops in costs],
        [flops.attention + flops.attention_projections for flops in costs],
    )
    return [
        Number(
            key="ratio",
            label=Wording("times fewer operations in attention with its projections"),
            value=work[0] / work[1],
            unit="times",
        ),
        Number(
            key="scores",
            label=Wording("times fewer for scores and weighted values alone"),
            value=alone[0] / alone[1],
            unit="times",
        ),
    ]


def _thrice(values: Values) -> Verdict:
    ratio = values["ratio"]
    return "right" if ratio >= 2.7 else "half" if ratio >= 2 else "wrong"


_COUNTS = "import core_models as cm\n\nfor name in {0}:\n    print(name, cm.count(name).to_json())"

CLAIMS = (
    Claim(
        name="distilbert-forty",
        family="DistilBERT",
        statement="DistilBERT is 40 % smaller than BERT.",
        said="arXiv 1910.01108, abstract",
        source="counted from the released values",
        how="Builds both base sizes without memory and counts.",
        measure=_distilled,
        rule=near({"fewer": 40}, right=2, half=5),
        why="Six of twelve blocks, the pooler and the segments are gone, 43.1 of 109.5 million. "
        "The piece table, a fifth of BERT, stays whole.",
        code=_COUNTS.format('("bert-base-uncased", "distilbert-base-uncased")'),
        drawn=False,
    ),
    Claim(
        name="mmbert-small-work",
        family="ModernBERT",
        statement="mmBERT small has nearly as many parameters as ModernBERT base, so a pass costs "
        "nearly as much.",
        source="arXiv 2509.06888, table 1; counted",
        how="Counts parameters, and operations of a text of 512 tokens.",
        measure=_table_or_layers,
        rule=at_most(
            "ratio",
            1.25,
            2,
            "Right if the other takes up to 1.25 times as many operations, half right up to twice, "
            "else wrong.",
        ),
        why="A table is looked up, not multiplied: 256,000 pieces cost memory and no operations. "
        "What computes are 42 million parameters against 110.",
        code=_COUNTS.format('("modernbert-base", "mmbert-small")'),
        drawn=False,
    ),
    Claim(
        name="modernbert-sees-64",
        family="ModernBERT",
        statement="With a window of 64 tokens on each side, ModernBERT knows nothing of what "
        "stands further away.",
        source="arXiv 2412.13663, section 2.1.2",
        how="Changes one far piece in small ModernBERTs with a window of two, and looks how far "
        "the first token's state moves.",
        measure=_window,
        rule=at_most(
            "whole",
            0.001,
            0.1,
            "Right if the last piece of a text moves the first one's state by up to 0.001 %, half "
            "right up to 0.1 %, else wrong.",
        ),
        why="A local layer reads what its neighbours have read before it, so each one carries a "
        "window further, and every third layer sees the whole text.",
        code="import core_models as cm\n\nprint(cm.size('modernbert-base').kinds)\n"
        "print(cm.size('modernbert-base').attention.window)",
    ),
    Claim(
        name="rotary-distance",
        family="ModernBERT",
        statement="Move a whole text by some places, and ModernBERT understands it as before.",
        source="arXiv 2104.09864, section 3.2",
        how="Puts eleven places of padding before a text, in small models with random weights; "
        "BERT is the control.",
        measure=_places,
        rule=Rule(
            text="Right if the states move by no more than 0.1 %, half right up to 1 %, else "
            "wrong. It depends if the control moves by less than 1 %.",
            judge=_as_before,
        ),
        why="Queries and keys are turned by their positions, so their products depend on distances "
        "alone. BERT adds a row of its table to each piece.",
        code="import torch\nimport core_models as cm\n\n"
        "encoder = cm.Encoder(cm.size('ettin-encoder-17m')).eval()\n"
        "ids = torch.randint(5, 50_000, (1, 24))\n"
        "moved = torch.cat([torch.zeros(1, 11, dtype=torch.long), ids], 1)\n"
        "with torch.inference_mode():\n    plain = encoder(cm.Batch(input_ids=ids)).hidden\n"
        "    shifted = encoder(cm.Batch(input_ids=moved, attention_mask=moved > 0)).hidden\n"
        "print((plain - shifted[:, 11:]).abs().max())",
    ),
    Claim(
        name="modernbert-no-biases",
        family="ModernBERT",
        statement="ModernBERT has no biases at all.",
        source="arXiv 2412.13663, section 2.1.1",
        how="Builds ModernBERT base without memory and counts what is called bias.",
        measure=_biases,
        rule=Rule(
            text="Right if there is none, half right if the encoder has none, else wrong.",
            judge=_none_left,
        ),
        why="No linear layer of the encoder has one, nor any norm. The scores of the vocabulary "
        "keep theirs, one for each piece: how frequent it is.",
        code="import core_models as cm\n\nencoder = cm.Encoder(cm.size('ettin-encoder-17m'))\n"
        "print([name for name, _ in encoder.named_parameters() if name.endswith('bias')])",
        drawn=False,
    ),
    Claim(
        name="eurobert-210",
        family="EuroBERT",
        statement="EuroBERT-210m has 210 million parameters.",
        said="its name",
        source="counted from the released values",
        how="Builds the released size without memory and counts.",
        measure=_named,
        rule=near({"file": 210}, right=1, half=3),
        why="The name counts the encoder. Scores are made by a layer of their own and not with the "
        "piece table, so the file holds as many parameters again as that table.",
        code=_COUNTS.format('("eurobert-210m",)'),
        drawn=False,
    ),
    Claim(
        name="groups-thrice",
        family="EuroBERT",
        statement="In EuroBERT-610m three heads share their keys and values, so attention costs a "
        "third.",
        source="arXiv 2305.13245; counted",
        how="Counts the operations of a text of 512 tokens, with groups and without.",
        measure=_groups,
        rule=Rule(
            text="Right if it costs at least 2.7 times less, half right from twice on, else wrong.",
            judge=_thrice,
        ),
        why="Each head still has queries of its own and meets every key, so scores cost what they "
        "did. What shrinks are two of four projections, and a decoder's memory.",
        code="from dataclasses import replace\nimport core_models as cm\n\n"
        "c = cm.size('eurobert-610m')\n"
        "whole = replace(c, attention=replace(c.attention, key_heads=None))\n"
        "print(cm.count(c).flops(512), cm.count(whole).flops(512))",
        drawn=False,
    ),
)
