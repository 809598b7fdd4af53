"""Claims about ALBERT: its size, its speed, what its layers share. No Gradio in it."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

import core_models as cm
from app.claims.bench import Bench, filled, interleaved, percent, random_model, shrunk
from app.claims.card import Claim, Number, Rule, Values, Verdict, at_least, near
from app.labs.timeline.formats import layout_and_corpus
from app.labs.tokenizers.answers import shipped
from core_models.batch import Batch
from core_models.counting.counts import count
from core_models.data.order_pairs import SWAPPED, sentence_order
from viz.svg import Wording

TOKENS = 64
LAYERS, WIDTH = 12, 128
NOISE = 0.07
STEPS = 4


def _speed(bench: Bench) -> Sequence[Number]:
    """Counts of the base sizes; times of both made narrow, and of a second BERT as a control."""
    bert, albert = cm.count("bert-base-uncased"), cm.count("albert-base")
    dear, cheap = bert.flops(TOKENS).encoder, albert.flops(TOKENS).encoder
    encoders = {
        key: filled(shrunk(name, layers=LAYERS, width=WIDTH))
        for key, name in (
            ("bert", "bert-base-uncased"),
            ("albert", "albert-base"),
            ("again", "bert-base-uncased"),
        )
    }
    batch = Batch(input_ids=bench.ids(1, TOKENS))
    with torch.inference_mode():
        times = interleaved(bench, {key: _pass(e, batch) for key, e in encoders.items()})
    return [
        Number(
            key="fewer",
            label=Wording("times fewer parameters"),
            value=bert.base / albert.base,
            unit="times",
        ),
        Number(
            key="less", label=Wording("times fewer operations"), value=dear / cheap, unit="times"
        ),
        Number(
            key="faster",
            label=Wording("times faster here"),
            value=times["bert"] / times["albert"],
            unit="times",
        ),
        Number(
            key="noise",
            label=Wording("control: a second BERT, times faster"),
            value=times["bert"] / times["again"],
            unit="times",
        ),
        Number(key="bert", label=Wording("fastest pass of BERT"), value=times["bert"], unit="ms"),
        Number(
            key="albert", label=Wording("fastest pass of ALBERT"), value=times["albert"], unit="ms"
        ),
    ]


def _pass(encoder: cm.Encoder, batch: Batch) -> Callable[[], object]:
    return lambda: encoder(batch)


def _as_much_faster(values: Values) -> Verdict:
    faster = values["faster"]
    return "right" if faster >= values["fewer"] / 2 else "half" if faster >= 1.5 else "wrong"


def _slower(values: Values) -> Verdict:
    slower = 1 / values["faster"]
    if abs(values["noise"] - 1) > NOISE:
        return "depends"
    return "right" if slower >= 1.15 else "half" if slower >= 1.07 else "wrong"


def _factor(bench: Bench) -> Sequence[Number]:
    config = cm.size("albert-base")
    own = cm.count("albert-base")
    wide = count(replace(config, embeddings=replace(config.embeddings, width=config.width)))
    narrow = own.pieces + own.projection
    return [
        Number(
            key="wide",
            label=Wording("table of full width"),
            value=wide.pieces / 1e6,
            unit="million",
        ),
        Number(
            key="narrow",
            label=Wording("narrow table and projection"),
            value=narrow / 1e6,
            unit="million",
        ),
        Number(
            key="ratio", label=Wording("times smaller"), value=wide.pieces / narrow, unit="times"
        ),
    ]


def _printed(bench: Bench) -> Sequence[Number]:
    return [
        Number(
            key=name.removeprefix("albert-"),
            label=Wording("parameters of {0}", name),
            value=cm.count(name).base / 1e6,
            unit="million",
        )
        for name in ("albert-base", "albert-large", "albert-xlarge", "albert-xxlarge")
    ]


def _gradients(bench: Bench) -> Sequence[Number]:
    """Which steps the shared block learns from: copies of it, one per step, say so."""
    shared = random_model(shrunk("albert-base", layers=STEPS), bench.seed, heads=())
    apart = cm.Encoder(replace(shared.config, schedule=tuple(range(STEPS)))).eval()
    apart.embeddings.load_state_dict(shared.encoder.embeddings.state_dict())
    for block in apart.blocks:
        block.load_state_dict(shared.encoder.blocks[0].state_dict())
    batch = Batch(input_ids=bench.ids(4, 16))
    weights = torch.randn(4, 16, shared.config.width, generator=bench.generator(9))
    for encoder in (shared.encoder, apart):
        bench.check()
        (encoder(batch).hidden * weights).sum().backward()
    steps = [_gradient(block) for block in apart.blocks]
    whole, norms = _gradient(shared.encoder.blocks[0]), [float(g.norm()) for g in steps]
    gap = percent(float((whole - torch.stack(steps).sum(0)).norm()), float(whole.norm()))
    return [
        *(
            Number(
                key=f"step{n}",
                label=Wording("share of pass {0} in the gradient", n),
                value=percent(norm, sum(norms)),
                unit="%",
            )
            for n, norm in enumerate(norms, 1)
        ),
        Number(
            key="gap",
            label=Wording("shared gradient against the sum of all passes"),
            value=gap,
            unit="%",
        ),
    ]


def _gradient(block: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in block.parameters() if p.grad is not None])


def _first_only(values: Values) -> Verdict:
    share = values["step1"]
    return "right" if share >= 95 else "half" if share >= 75 else "wrong"


def _labels(bench: Bench) -> Sequence[Number]:
    """Where the pairs of the released data script stand in their document, by label."""
    _, corpus = layout_and_corpus(shipped("wordpiece"))
    source = random.Random(bench.seed)
    found = sentence_order(corpus, max_length=96, generator=source, random_for_lone=False)
    labels: dict[bool, list[bool]] = {False: [], True: []}
    for example in found:
        bench.check()
        in_order = example.first_start < example.second_start
        labels[example.label == SWAPPED].append(in_order)
    ones, zeros = labels[True], labels[False]
    return [
        Number(
            key="ones",
            label=Wording("pairs in order among those of label 1"),
            value=percent(sum(ones), len(ones)),
            unit="%",
        ),
        Number(
            key="zeros",
            label=Wording("pairs in order among those of label 0"),
            value=percent(sum(zeros), len(zeros)),
            unit="%",
        ),
        Number(key="pairs", label=Wording("pairs looked at"), value=float(len(ones) + len(zeros))),
    ]


_SPEED = """import time
from dataclasses import replace
import torch
import core_models as cm

bert, albert = cm.size("bert-12x128"), cm.size("albert-base")
albert = replace(albert, width=128, attention=bert.attention, feed_forward=bert.feed_forward)
sizes = {"BERT": bert, "ALBERT": albert}
encoders = {name: cm.Encoder(config).eval() for name, config in sizes.items()}
batch = cm.Batch(input_ids=torch.randint(5, 30_000, (1, 64)))
with torch.inference_mode():
    for turn in range(15):
        for name, encoder in encoders.items():
            start = time.perf_counter()
            encoder(batch)
            print(name, time.perf_counter() - start)"""
_COUNTS = """import core_models as cm

for name in ("albert-base", "albert-large", "albert-xlarge", "albert-xxlarge"):
    print(name, cm.count(name).base)"""

CLAIMS = (
    Claim(
        name="albert-faster",
        family="ALBERT",
        statement="ALBERT base has about nine times fewer parameters than BERT base, so it runs "
        "that much faster.",
        articles=(1, 2, 4),
        source="arXiv 1909.11942, table 2",
        how="Counts both base sizes, and times both at 12 layers of width 128 in turns, 64 tokens.",
        measure=_speed,
        rule=Rule(
            text="Right if it is at least half as many times faster as it has fewer parameters, "
            "half right from 1.5 times faster on, else wrong.",
            judge=_as_much_faster,
        ),
        why="One block is stored, but all twelve passes are computed. The file is small; the work "
        "is the same.",
        code=_SPEED,
    ),
    Claim(
        name="albert-slower",
        family="ALBERT",
        statement="At the same depth and width ALBERT is slower than BERT.",
        articles=(5,),
        source="arXiv 1909.11942, table 2",
        how="Times both at 12 layers of width 128 in turns, 64 tokens, with a second BERT as a "
        "control.",
        measure=_speed,
        rule=Rule(
            text="Right if it takes at least 15 % longer, half right from 7 % on, else wrong. It "
            "depends on the moment if two equal BERTs differ by more than 7 %.",
            judge=_slower,
        ),
        why="Sharing changes where weights lie, not what is computed. What is slow is the xxlarge "
        "size that scored best: it is four times as wide as BERT large.",
        code=_SPEED,
    ),
    Claim(
        name="albert-sixth",
        family="ALBERT",
        statement="Factorised embeddings are about a sixth of what they replace.",
        articles=(1,),
        source="arXiv 1909.11942, section 3.1; counted",
        how="Counts ALBERT base's table with its projection, and a table of full width.",
        measure=_factor,
        rule=near({"ratio": 6}, right=4, half=10),
        why="V E + E H weights against V H, with V = 30,000, E = 128 and H = 768.",
        code="from dataclasses import replace\nimport core_models as cm\n"
        "from core_models.counting.counts import count\n\nc = cm.size('albert-base')\n"
        "wide = replace(c, embeddings=replace(c.embeddings, width=c.width))\nown = count(c)\n"
        "print(count(wide).pieces / (own.pieces + own.projection))",
        drawn=False,
    ),
    Claim(
        name="albert-xxlarge-235",
        family="ALBERT",
        statement="ALBERT xxlarge has 235 million parameters.",
        said="arXiv 1909.11942, table 1",
        source="counted from the released values",
        how="Builds the released sizes without memory and counts.",
        measure=_printed,
        rule=near({"xxlarge": 235}, right=1, half=3),
        why="The printed figure cannot be counted from the published values; even an output table "
        "of its own would leave 9 million unexplained.",
        code=_COUNTS,
        drawn=False,
    ),
    Claim(
        name="albert-four-sizes",
        family="ALBERT",
        statement="The four sizes of ALBERT have 12, 18, 60 and 220 million parameters.",
        articles=(2,),
        source="arXiv 1909.11942, table 1; counted",
        how="Builds the released sizes without memory and counts.",
        measure=_printed,
        rule=near({"base": 12, "large": 18, "xlarge": 60, "xxlarge": 220}, right=1, half=3),
        why="Rounded figures: 11.7, 17.7, 58.7 and 222.6 million.",
        code=_COUNTS,
        drawn=False,
    ),
    Claim(
        name="albert-first-layer",
        family="ALBERT",
        statement="ALBERT learns the weights of its first layer only and hands them to the others.",
        articles=(2,),
        source="arXiv 1909.11942, section 3.1; google-research/albert, modeling.py",
        how="Takes the gradient of a small ALBERT with four passes, and of a copy whose passes "
        "have weights of their own.",
        measure=_gradients,
        rule=Rule(
            text="Right if the first pass gives at least 95 % of the gradient, half right from "
            "75 % on, else wrong.",
            judge=_first_only,
        ),
        why="The block's gradient is the sum over all passes that used it: every layer teaches it, "
        "none is copied from another.",
        code="from dataclasses import replace\nimport core_models as cm\n\n"
        "shared = cm.size('albert-base')\napart = replace(shared, schedule=tuple(range(12)))\n"
        "print(cm.count(shared).encoder, cm.count(apart).encoder)",
    ),
    Claim(
        name="sop-label",
        family="ALBERT",
        statement="In sentence order prediction label 1 means that the sentences are in order.",
        articles=(5,),
        source="google-research/albert, create_pretraining_data.py",
        how="Builds pairs of the Primer as the released script does, without chunks of one "
        "sentence, which it pairs with another document, and looks where they stood.",
        measure=_labels,
        rule=at_least(
            "ones",
            95,
            60,
            "Right if 95 % of the pairs of label 1 are in order, half right from "
            "60 % on, else wrong.",
        ),
        why="The released code gives 0 to pairs in order and 1 to swapped ones. Any choice would "
        "do; a checkpoint must be read with its own.",
        code="import random\nfrom core_models import Tokenizer\n"
        "from core_models.data.corpus import Corpus\n"
        "from core_models.data.order_pairs import sentence_order\n\n"
        "tokenizer = Tokenizer.from_folder('assets/tokenizers/wordpiece')\n"
        "texts = [['One.', 'Two.', 'Three.'], ['Four.', 'Five.']]\n"
        "corpus = Corpus.encode(texts, tokenizer)\n"
        "print(list(sentence_order(corpus, max_length=32, generator=random.Random(0))))",
    ),
)
