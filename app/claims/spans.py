"""Claims about n-grams and spans: ALBERT, SpanBERT, DeBERTa. No Gradio in it."""

from collections.abc import Sequence

import torch

import core_models as cm
from app.claims.bench import Bench, masked_rows, percent
from app.claims.card import Claim, Number, Rule, Values, Verdict
from app.labs.timeline import answers as timeline
from core_models.masking import spans as span_masking
from viz.svg import Wording

DRAWS = 4000


def _heads(bench: Bench) -> Sequence[Number]:
    """Parameters of SpanBERT's heads, counted from the built module."""
    found = cm.count("spanbert-base-cased").heads
    labels = {
        "masked_token": Wording("parameters of the head for masked tokens"),
        "span_boundary": Wording("parameters of the head for span boundaries"),
        "next_sentence": Wording("parameters of the head for the next sentence"),
        "sentence_order": Wording("parameters of the head for sentence order"),
    }
    return [
        Number(key=key, label=label, value=float(found.get(key, 0)))
        for key, label in labels.items()
    ]


def _has_order(values: Values) -> Verdict:
    if values["sentence_order"] > 0:
        return "right" if values["masked_token"] > 0 else "half"
    return "wrong"


def _lengths(bench: Bench, kind: str) -> list[int]:
    drawn = torch.rand(DRAWS, generator=bench.generator(1), dtype=torch.float64)
    return span_masking.draw_lengths(drawn.tolist(), timeline.published_shares(kind))


def _ngrams(bench: Bench) -> Sequence[Number]:
    drawn = _lengths(bench, "ngram")
    return [
        *(
            Number(
                key=f"n{n}",
                label=Wording("drawn n-grams of {0} words", n)
                if n > 1
                else Wording("drawn n-grams of 1 word"),
                value=percent(drawn.count(n), len(drawn)),
                unit="%",
            )
            for n in (1, 2, 3)
        ),
        Number(key="mean", label=Wording("mean length in words"), value=sum(drawn) / len(drawn)),
    ]


def _three(values: Values) -> Verdict:
    if values["n3"] >= 90:
        return "right"
    return "half" if values["n3"] >= max(values["n1"], values["n2"]) else "wrong"


def _geometric(bench: Bench) -> Sequence[Number]:
    drawn = _lengths(bench, "span")
    longer = 100 * (1 - 0.2) ** 10
    return [
        Number(
            key="mean", label=Wording("mean length drawn, in words"), value=sum(drawn) / len(drawn)
        ),
        Number(
            key="bare", label=Wording("mean of a geometric distribution with p = 0.2"), value=5.0
        ),
        Number(key="longest", label=Wording("longest span drawn"), value=float(max(drawn))),
        Number(
            key="longer",
            label=Wording("share that a geometric distribution has above 10"),
            value=longer,
            unit="%",
        ),
    ]


def _bare(values: Values) -> Verdict:
    off = abs(values["mean"] / values["bare"] - 1)
    if off <= 0.05 and values["longest"] > 10:
        return "right"
    return "half" if off <= 0.1 else "wrong"


def _cases(bench: Bench) -> Sequence[Number]:
    """Chosen runs of at least two pieces whose pieces do not share one case."""
    found = []
    labels = {
        "span": Wording("mixed runs, drawn as SpanBERT does"),
        "whole_word": Wording("mixed runs, drawn as BERT does with whole words"),
    }
    for kind, label in labels.items():
        _, drawn = masked_rows(bench, kind)
        if not isinstance(drawn, span_masking.SpanMasked):
            drawn = span_masking.with_spans(drawn, drawn.cases > 0)
        runs = [
            drawn.cases[r, a:b].unique().numel() for r, a, b in drawn.spans.tolist() if b > a + 1
        ]
        mixed = percent(sum(n > 1 for n in runs), len(runs))
        found.append(Number(key=kind, label=label, value=mixed, unit="%"))
    return found


_LENGTHS = """import torch
from core_models.masking import spans as span_masking

shares = {shares}
numbers = torch.rand(4000, dtype=torch.float64).tolist()
lengths = span_masking.draw_lengths(numbers, shares)
print(sum(lengths) / len(lengths), max(lengths))"""

CLAIMS = (
    Claim(
        name="ngram-three",
        family="ALBERT",
        statement="n-gram masking hides three words on end.",
        source="arXiv 1909.11942, section 4.1",
        how="Draws 4,000 lengths as ALBERT's recipe does.",
        measure=_ngrams,
        rule=Rule(
            text="Right if 90 % have three words, half right if three is the most frequent length, "
            "else wrong.",
            judge=_three,
        ),
        why="Three is the longest; a length of n is drawn with a weight of 1/n, so one word is the "
        "most frequent.",
        code=_LENGTHS.format(shares="span_masking.ALBERT_WEIGHTS"),
    ),
    Claim(
        name="spanbert-order",
        family="SpanBERT",
        statement="SpanBERT is trained on masked spans and on sentence order.",
        articles=(1,),
        source="arXiv 1907.10529, section 3",
        how="Builds the pretraining heads of the released size without memory and counts them.",
        measure=_heads,
        rule=Rule(
            text="Right if there are heads for masked tokens and for sentence order, half right "
            "if only for sentence order, else wrong.",
            judge=_has_order,
        ),
        why="It reads one segment at a time, so there is no pair to ask about. The second "
        "objective predicts each word of a span from the two tokens around it.",
        code="import core_models as cm\n\nprint(cm.count('spanbert-base-cased').heads)",
        drawn=False,
    ),
    Claim(
        name="spanbert-geometric",
        family="SpanBERT",
        statement="SpanBERT draws lengths from a geometric distribution with p = 0.2: five words "
        "on average.",
        articles=(3,),
        source="arXiv 1907.10529, section 3.1; released code",
        how="Draws 4,000 lengths as SpanBERT's recipe does.",
        measure=_geometric,
        rule=Rule(
            text="Right if the mean is within 5 % of 5 and some spans have more than 10 words, "
            "half right if the mean is within 10 %, else wrong.",
            judge=_bare,
        ),
        why="The distribution ends at 10 and is scaled up to make 1 again, which brings the mean "
        "to 3.8.",
        code=_LENGTHS.format(shares="span_masking.geometric(0.2, 10)"),
    ),
    Claim(
        name="spanbert-one-draw",
        family="SpanBERT",
        statement="All pieces of a span share one draw: all [MASK], all random, or all kept.",
        said="arXiv 1907.10529, section 3.1",
        source="arXiv 1907.10529, section 3.1; released code",
        how="Masks 48 texts of the Primer and looks for hidden runs whose pieces differ.",
        measure=_cases,
        rule=Rule(
            text="Right if up to 1 % of the runs are mixed, half right up to 10 %, else wrong.",
            judge=lambda values: (
                "right" if values["span"] <= 1 else "half" if values["span"] <= 10 else "wrong"
            ),
        ),
        why="SpanBERT draws once per span. BERT's whole-word masking draws for each piece, so a "
        "word may be half [MASK] and half random.",
        code="from core_models.masking import spans as span_masking\n\nhelp(span_masking.spans)",
    ),
)
