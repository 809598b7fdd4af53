"""Claims about pairs of sentences: next sentence and sentence order. No Gradio in it."""

from collections.abc import Sequence
from functools import partial

from app.claims.bench import Bench, answering, percent
from app.claims.card import Claim, Number, Rule, Values, Verdict
from app.labs.pairs import answers as pairs
from core_models.evaluation.language import language_of
from core_models.prediction import judge_pair
from viz.svg import Wording

PAIRS = 24
ANSWERS = {"next_sentence": ("next", "random"), "sentence_order": ("in order", "swapped")}


def _pair_answers(bench: Bench, head: str) -> list[Number]:
    """How often label 0 is given to pairs of the Primer of each kind."""
    model = bench.with_head(head)
    language = language_of(model.tokenizer)
    said = dict.fromkeys(pairs.KINDS, 0)
    for number in range(PAIRS):
        example = pairs.example(1000 * bench.seed + number, language)
        for kind in pairs.KINDS:
            answer = bench.ask(partial(judge_pair, model, *example.pair(kind)))
            said[kind] += answer.probabilities[0] > 0.5
    labels = {
        "next": Wording("taken for neighbours in order: the true next sentence"),
        "swapped": Wording("taken for neighbours in order: the two swapped"),
        "same": Wording("taken for neighbours in order: another one of the same passage"),
        "other": Wording("taken for neighbours in order: one about something else"),
    }
    return [
        Number(key=kind, label=labels[kind], value=percent(said[kind], PAIRS), unit="%")
        for kind in pairs.KINDS
    ]


def _doubt(bench: Bench, values: Values, head: str) -> str:
    """Why a judge's answers say nothing of its task: they are all alike, or guesses."""
    name = answering(bench.models, bench.chosen, head)
    asked = PAIRS * len(pairs.KINDS)
    yes = round(sum(values[kind] for kind in pairs.KINDS) / 100 * PAIRS)
    often = max(yes, asked - yes)
    answer = ANSWERS[head][0 if often == yes else 1]
    if pairs.constant(yes, asked):
        return (
            f"No verdict: {name} says “{answer}” to {often} of {asked} pairs. This judge always "
            "answers the same; it was trained too little to tell whether the claim holds."
        )
    known = pairs.reliability(bench.models.card(name)["text_pairs"]) if name else None
    if known and known["guesses"]:
        return (
            f"No verdict: of {known['questions']} held-out questions {name} answered "
            f"{100 * known['right']:.1f} % right, no better than guessing. It was trained too "
            "little to tell whether the claim holds."
        )
    return ""


def _knows_order(values: Values) -> Verdict:
    gap = values["next"] - values["swapped"]
    return "right" if gap >= 50 else "half" if gap >= 15 else "wrong"


def _topic_is_enough(values: Values) -> Verdict:
    gain = values["same"] - values["other"]
    return "right" if gain >= 30 else "half" if gain >= 10 else "wrong"


def _numbers_of_pairs(bench: Bench) -> Sequence[Number]:
    return _pair_answers(bench, "next_sentence")


def _numbers_of_order(bench: Bench) -> Sequence[Number]:
    return _pair_answers(bench, "sentence_order")


_PAIR_CODE = """import core_models as cm
from core_models.prediction import judge_pair

model = cm.load("{name}")  # any model with the head {head}
first, second = "Two sentences", "that you choose"
print(judge_pair(model, first, second).probabilities)
print(judge_pair(model, second, first).probabilities)
"""
NEXT = "next_sentence"
ORDER = "sentence_order"

CLAIMS = (
    Claim(
        name="nsp-order",
        family="BERT",
        statement="Next sentence prediction teaches a model in which order sentences stand.",
        source="arXiv 1909.11942, section 4.6, table 5",
        how="Asks an installed model about 24 sentences of the Primer and their successors, in "
        "order and swapped.",
        measure=_numbers_of_pairs,
        rule=Rule(
            text="Right if true pairs are accepted at least 50 points more often than swapped "
            "ones, half right from 15 points on, else wrong.",
            judge=_knows_order,
        ),
        doubt=partial(_doubt, head=NEXT),
        why="Its wrong pairs come from other documents, so order is never asked. ALBERT's authors "
        "measured 52 % on sentence order after training on next sentence.",
        code=_PAIR_CODE.format(name="bert-mini", head=NEXT),
        head=NEXT,
    ),
    Claim(
        name="nsp-topic",
        family="BERT",
        statement="Next sentence prediction is mostly a question about the topic.",
        articles=(4,),
        said="arXiv 1909.11942, section 3.1",
        source="arXiv 1909.11942, section 3.1",
        how="Asks an installed model about 24 sentences with a wrong partner of the same passage, "
        "and with one about something else.",
        measure=_numbers_of_pairs,
        rule=Rule(
            text="Right if wrong partners of the same passage are accepted at least 30 points more "
            "often than those about something else, half right from 10 points on, else wrong.",
            judge=_topic_is_enough,
        ),
        doubt=partial(_doubt, head=NEXT),
        why="A random document nearly always has another topic; a model that sees topics needs no "
        "more to answer.",
        code=_PAIR_CODE.format(name="bert-mini", head=NEXT),
        head=NEXT,
    ),
    Claim(
        name="sop-order",
        family="ALBERT",
        statement="Sentence order prediction teaches what next sentence prediction does not: "
        "order.",
        articles=(4, 5),
        said="arXiv 1909.11942, section 3.1",
        source="arXiv 1909.11942, section 4.6, table 5",
        how="Asks an installed model about 24 sentences of the Primer and their successors, in "
        "order and swapped.",
        measure=_numbers_of_order,
        rule=Rule(
            text="Right if true pairs are accepted at least 50 points more often than swapped "
            "ones, half right from 15 points on, else wrong.",
            judge=_knows_order,
        ),
        doubt=partial(_doubt, head=ORDER),
        why="Both texts of a pair come from one document, so only the order tells them apart. A "
        "small model may learn little of it.",
        code=_PAIR_CODE.format(name="albert-mini", head=ORDER),
        head=ORDER,
    ),
)
