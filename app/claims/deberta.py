"""Claims about DeBERTa: its attention, its positions, its decoder. No Gradio in it."""

from collections.abc import Sequence

import torch

import core_models as cm
from app.claims.bench import Bench, moved, percent, random_model, shrunk
from app.claims.card import Claim, Number, Rule, Values, Verdict, at_least
from core_models.batch import Batch
from core_models.network.initialise import without_values
from viz.svg import Wording

_SIZE = "deberta-base"
_SITES = ("content_score", "term:*", "scores", "probabilities")


def _first_layer(bench: Bench) -> cm.Trace:
    """The scores of the first layer of a narrow random model on random texts."""
    model = random_model(shrunk(_SIZE), bench.seed, heads=())
    trace = cm.Trace(sites=_SITES, steps=[0])
    with torch.inference_mode():
        model.encoder(Batch(input_ids=bench.ids(2, 16)), trace)
    return trace


def _terms(bench: Bench) -> Sequence[Number]:
    """Every summand of one layer's scores, and what is left of the score without them."""
    trace = _first_layer(bench)
    terms = {site: record for (site, _, _), record in trace.records.items() if "term:" in site}
    content, scores = trace["content_score", 0], trace["scores", 0]
    whole = content + sum(terms.values())
    names = {
        "term:c2p": Wording("size of the term “content to position”"),
        "term:p2c": Wording("size of the term “position to content”"),
    }
    size = float(content.norm()) + sum(float(term.norm()) for term in terms.values())
    shares = [
        Number(
            key=site.removeprefix("term:"),
            label=names[site],
            value=percent(float(record.norm()), size),
            unit="%",
        )
        for site, record in sorted(terms.items())
    ]
    return [
        Number(key="terms", label=Wording("summands of the score"), value=float(1 + len(terms))),
        Number(
            key="content",
            label=Wording("size of the term “content to content”"),
            value=percent(float(content.norm()), size),
            unit="%",
        ),
        *shares,
        Number(
            key="rest",
            label=Wording("what they leave of the score unexplained"),
            value=moved(scores, whole),
            unit="%",
        ),
    ]


def _four(values: Values) -> Verdict:
    explained = values["rest"] < 0.01
    if values["terms"] == 4:
        return "right" if explained else "half"
    return "wrong" if explained else "half"


def _softmaxes(bench: Bench) -> Sequence[Number]:
    """The traced weights against one softmax of the sum and against two softmaxes added."""
    trace = _first_layer(bench)
    terms = [record for (site, _, _), record in trace.records.items() if "term:" in site]
    content, found = trace["content_score", 0], trace["probabilities", 0]
    position = sum(terms[1:], terms[0])
    one = (content + position).softmax(-1)
    two = content.softmax(-1) + position.softmax(-1)
    return [
        Number(
            key="one",
            label=Wording("distance to one softmax over the sum"),
            value=moved(found, one),
            unit="%",
        ),
        Number(
            key="two",
            label=Wording("distance to two softmaxes added"),
            value=moved(found, two),
            unit="%",
        ),
        Number(
            key="sum", label=Wording("sum of a token's weights"), value=float(found.sum(-1).mean())
        ),
    ]


def _added(values: Values) -> Verdict:
    fits = (values["two"] < 0.01, values["one"] < 0.01)
    return "right" if fits[0] and not fits[1] else "half" if fits[0] or not fits[1] else "wrong"


def _moves(bench: Bench) -> Sequence[Number]:
    """Move a text three places to the right: the encoder, and what predicts masked tokens."""
    ids = bench.ids(4, 12)
    padded = torch.cat([torch.zeros(4, 3, dtype=torch.long), ids], 1)
    seen = torch.arange(15).expand(4, 15) >= 3
    model = random_model(shrunk(_SIZE), bench.seed, heads=())
    here, there = Batch(input_ids=ids), Batch(input_ids=padded, attention_mask=seen)
    with torch.inference_mode():
        first, second = model.encoder(here), model.encoder(there)
        decoded = model.encoder.decode(here, first), model.encoder.decode(there, second)[:, 3:]
    return [
        Number(
            key="encoder",
            label=Wording("change of the encoder's states when the text moves"),
            value=moved(first.hidden, second.hidden[:, 3:]),
            unit="%",
        ),
        Number(
            key="decoder",
            label=Wording("change of what masked tokens are predicted from"),
            value=moved(*decoded),
            unit="%",
        ),
    ]


def _no_absolute(values: Values) -> Verdict:
    blind = (values["encoder"] < 0.1, values["decoder"] < 0.1)
    return "right" if all(blind) else "half" if any(blind) else "wrong"


def _decoder(bench: Bench) -> Sequence[Number]:
    """Weights of the mask decoder that no layer of the encoder has."""
    with without_values():
        encoder = cm.Encoder(cm.size(_SIZE))
    own = sum(p.numel() for p in encoder.mask_decoder.parameters()) if encoder.mask_decoder else 0
    layer = cm.count(_SIZE).one_block
    steps = encoder.config.mask_decoder.steps if encoder.config.mask_decoder else 0
    return [
        Number(
            key="layer",
            label=Wording("one layer of {0}", "deberta-base"),
            value=layer / 1e6,
            unit="million",
        ),
        Number(
            key="own",
            label=Wording("weights that only the decoder has"),
            value=own / 1e6,
            unit="million",
        ),
        Number(
            key="share",
            label=Wording("decoder against one layer"),
            value=percent(own, layer),
            unit="%",
        ),
        Number(key="steps", label=Wording("times the last layer runs again"), value=float(steps)),
    ]


def _version3(bench: Bench) -> Sequence[Number]:
    found = cm.count("deberta-v3-base")
    return [
        Number(
            key="all",
            label=Wording("parameters of {0}", "deberta-v3-base"),
            value=found.base / 1e6,
            unit="million",
        ),
        Number(
            key="pieces",
            label=Wording("of those, piece table"),
            value=found.pieces / 1e6,
            unit="million",
        ),
        Number(
            key="rest",
            label=Wording("of those, everything else"),
            value=(found.base - found.pieces) / 1e6,
            unit="million",
        ),
    ]


def _eighty_six(values: Values) -> Verdict:
    def close(value: float) -> bool:
        return abs(86 / value - 1) <= 0.02

    return "right" if close(values["all"]) else "half" if close(values["rest"]) else "wrong"


def _inputs(bench: Bench) -> Sequence[Number]:
    """What a pair could be told apart by, and which heads are trained."""
    config, found = cm.size(_SIZE), cm.count(_SIZE)
    bert = cm.size("bert-base-uncased")
    return [
        Number(
            key="segments",
            label=Wording("segments that {0} tells apart", "deberta-base"),
            value=float(config.embeddings.segments),
        ),
        Number(
            key="bert",
            label=Wording("segments that {0} tells apart", "bert-base-uncased"),
            value=float(bert.embeddings.segments),
        ),
        Number(
            key="order",
            label=Wording("parameters of DeBERTa's head for sentence order"),
            value=float(found.heads.get("sentence_order", 0)),
        ),
        Number(
            key="masked",
            label=Wording("parameters of DeBERTa's head for masked tokens"),
            value=float(found.heads.get("masked_token", 0)),
        ),
    ]


def _pair_model(values: Values) -> Verdict:
    signs = (values["segments"] > 1, values["order"] > 0)
    return "right" if all(signs) else "half" if any(signs) else "wrong"


_TRACE = """import core_models as cm

model = cm.load("deberta-mini")  # any DeBERTa
trace = cm.Trace(sites=["content_score", "term:*", "scores", "probabilities"], steps=[0])
model.encoder(model.batch(["The capital of France is Paris."]), trace)
print({site: record.norm() for (site, _, _), record in trace.records.items()})"""
_COUNT = """import core_models as cm

found = cm.count("{name}")
print(found.to_json())"""

CLAIMS = (
    Claim(
        name="deberta-four-terms",
        family="DeBERTa",
        statement="DeBERTa's attention score is the sum of four terms.",
        said="arXiv 2006.03654, equation 2",
        source="arXiv 2006.03654, section 3.1, equation 4",
        how="Reads every summand of the scores of a small DeBERTa and adds them up again.",
        measure=_terms,
        rule=Rule(
            text="Right if there are four summands that explain the score, wrong if another number "
            "of them does; half right if they do not explain it.",
            judge=_four,
        ),
        why="The formula begins with four, but the authors leave position to position out: with "
        "relative positions it says little more.",
        code=_TRACE,
    ),
    Claim(
        name="deberta-two-softmaxes",
        family="DeBERTa",
        statement="DeBERTa computes one attention for content and one for positions and adds them.",
        articles=(1,),
        source="arXiv 2006.03654, section 3.1, equation 4",
        how="Compares a small DeBERTa's weights with one softmax over the sum of its terms, and "
        "with two softmaxes added.",
        measure=_softmaxes,
        rule=Rule(
            text="Right if two softmaxes added give the weights and one does not, wrong if one "
            "over the sum does and two do not; else half right.",
            judge=_added,
        ),
        why="The terms are added as scores, scaled together by the root of 3d, and there is one "
        "softmax over them. Values carry content only.",
        code=_TRACE,
    ),
    Claim(
        name="deberta-no-absolute",
        family="DeBERTa",
        statement="DeBERTa has relative positions instead of absolute ones.",
        articles=(1,),
        source="arXiv 2006.03654, section 3.2",
        how="Moves a text three places to the right in a small DeBERTa. Relative positions do not "
        "notice.",
        measure=_moves,
        rule=Rule(
            text="Right if neither the encoder's states nor what masked tokens are predicted from "
            "changes by 0.1 %, half right if one of them does, else wrong.",
            judge=_no_absolute,
        ),
        why="The layers know distances only. Absolute places come in at the very end, in the mask "
        "decoder.",
        code=_TRACE,
    ),
    Claim(
        name="deberta-deeper-decoder",
        family="DeBERTa",
        statement="DeBERTa's enhanced mask decoder is a stack of further layers.",
        articles=(1,),
        source="arXiv 2006.03654, section 3.2; released code",
        how="Counts the weights that only the decoder has.",
        measure=_decoder,
        rule=at_least(
            "share",
            100,
            50,
            "Right if it has at least the weights of one layer, half right from half a layer on, "
            "else wrong.",
        ),
        why="It runs the encoder's last layer twice more, from queries that know absolute places. "
        "Only the table of those places is new.",
        code=_COUNT.format(name="deberta-base"),
        drawn=False,
    ),
    Claim(
        name="deberta-sentence-order",
        family="DeBERTa",
        statement="DeBERTa has segment embeddings and is also trained on sentence order.",
        articles=(1,),
        source="arXiv 2006.03654, section 5; released code",
        how="Builds the released size without memory and looks for both.",
        measure=_inputs,
        rule=Rule(
            text="Right if it tells two segments apart and has a head for sentence order, half "
            "right if one of the two holds, else wrong.",
            judge=_pair_model,
        ),
        why="Masked words are its only objective, and nothing marks a second segment but the "
        "separator.",
        code=_COUNT.format(name="deberta-base"),
        drawn=False,
    ),
    Claim(
        name="deberta-v3-86",
        family="DeBERTa",
        statement="DeBERTa v3 base has 86 million parameters.",
        said="README of the DeBERTa repository",
        source="arXiv 2111.09543; counted",
        how="Builds the released size without memory and counts.",
        measure=_version3,
        rule=Rule(
            text="Right if all parameters are within 2 % of 86 million, half right if those "
            "without the piece table are, else wrong.",
            judge=_eighty_six,
        ),
        why="86 million is the backbone. The table of 128,100 pieces adds 98 million, more than "
        "all layers together.",
        code=_COUNT.format(name="deberta-v3-base"),
        drawn=False,
    ),
)
