"""What the Claims lab shows of a statement: its card, its numbers, all verdicts so far."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from app.claims.bench import answering, missing
from app.claims.card import UNJUDGED, Claim
from app.claims.desk import CLAIMS, FAMILIES, MOST_SEED, Desk, Result, code_lines, read_run
from app.parts.controls import InsteadError
from app.parts.plain import table
from core_models import InputError
from viz.claims import Measured, measured, readable
from viz.svg import Wording

FIRST = "albert-faster"
TRY = {
    "Small, so fast?": ("albert-faster", "albert-first-layer", "albert-sixth"),
    "What does a mask hide?": (
        "bert-always-mask",
        "bert-loss-where-replaced",
        "ngram-three",
        "electra-fifteen",
    ),
    "How many parameters?": (
        "bert-half-embeddings",
        "electra-twice",
        "roberta-340",
        "deberta-v3-86",
        "eurobert-210",
    ),
    "Topic or order?": ("nsp-topic", "nsp-order", "sop-order", "sop-label"),
    "What changed by 2024?": (
        "modernbert-sees-64",
        "rotary-distance",
        "modernbert-no-biases",
        "mmbert-small-work",
        "groups-thrice",
    ),
    "Where are the positions?": (
        "bert-relative-positions",
        "deberta-no-absolute",
        "xlnet-shuffles",
        "xlnet-longer",
    ),
}
TOPICS: dict[str, list[str]] = {
    "": list(CLAIMS),
    **{topic: list(names) for topic, names in TRY.items()},
    **{
        family: [name for name, claim in CLAIMS.items() if claim.family == family]
        for family in FAMILIES
    },
}
"""Names of claims by what they are about."""
TOPIC_NAMES = [("All statements", ""), *((name, name) for name in TOPICS if name)]
GUESSES = {"right": "Right", "wrong": "Wrong", "partly": "Partly", "none": "Just measure"}
VERDICTS = {
    "right": Wording("Right"),
    "wrong": Wording("Wrong"),
    "half": Wording("Half right"),
    "depends": Wording("It depends"),
    UNJUDGED: Wording("No verdict"),
}
UNITS = {"million": Wording("million"), "times": Wording("times")}
"""Those that are words."""
SIGNS = {"right": "✓", "wrong": "✗", "half": "◐", "depends": "±", UNJUDGED: "\u2013"}
TITLES = (
    "Encoder-only 架构",
    "2.3 基于 Encoder-only 架构的大语言模型",
    "bert变种",
    "LLM学习笔记 3.1 Encoder-only PLM",
    "3.1.1 BERT · 3.1.2 RoBERTa · 3.1.3 ALBERT",
)
SHOWN = 10
"""How many values the answer has."""
MOST_RUN = 100
"""Measurements that a page may remember: more than there are claims."""


# --- what is asked --------------------------------------------------------------------------------


def topic_of(question: Mapping[str, Any]) -> list[str]:
    """The names of the claims that are chosen; those of an old link, of the topic, or all."""
    return TOPICS[""] if left(question) else _named(question)


def left(question: Mapping[str, Any]) -> bool:
    """Whether a claim was chosen that is not of the topic, which stayed as it was answered."""
    stayed = question.get("linked") == [question["topic"], question["only"]]
    return stayed and question["claim"] not in _named(question)


def _named(question: Mapping[str, Any]) -> list[str]:
    only = question["only"] if isinstance(question["only"], list) else []
    names = [name for name in only[:MOST_RUN] if isinstance(name, str) and name in CLAIMS]
    return names or TOPICS.get(str(question["topic"]), TOPICS[""])


def seeds(question: Mapping[str, Any]) -> dict[str, int]:
    """The seed of each measured claim, in the order in which they were measured."""
    found: dict[str, int] = {}
    for each in question["ran"][:MOST_RUN] if isinstance(question["ran"], list) else ():
        name, _, seed = str(each)[:60].partition(".")
        if name in CLAIMS and (not seed or (seed.isascii() and seed.isdigit())):
            found[name] = min(int(seed or 0), MOST_SEED) if CLAIMS[name].drawn else 0
    return found


def model_of(question: Mapping[str, Any]) -> str:
    """The chosen model's name."""
    return str((question["model"] or {}).get("model") or "")


def chosen(question: Mapping[str, Any]) -> Claim:
    """The claim that is shown: one of the topic."""
    names = topic_of(question)
    name = question["claim"]
    if name == FIRST and question["linked"] is True:  # a link may name only what was measured
        name = next((each for each in reversed(seeds(question)) if each in names), name)
    return CLAIMS[name if isinstance(name, str) and name in names else names[0]]


def hit(guess: Any, verdict: str) -> bool:
    """Whether a guess is right; "partly" stands for half right and for depends."""
    return guess == verdict or (guess == "partly" and verdict in ("half", "depends"))


# --- measuring ------------------------------------------------------------------------------------


async def run(desk: Desk, question: Mapping[str, Any], claim: Claim, seed: int, who: str) -> Result:
    """One measurement, checked like everything that a page sends."""
    asked = {"name": claim.name, "seed": seed, "model": model_of(question)}
    return await desk.run(f"{question['visitor']} {who}", *read_run(asked))


async def measure(desk: Desk, question: Mapping[str, Any]) -> list[Any]:
    """The claim that is shown, with the visitor's guess."""
    if question["guess"] is None:  # it waited for an answer, and belonged to another statement
        return [gr.skip()]
    claim, known = chosen(question), seeds(question)
    guesses = question["guesses"] if isinstance(question["guesses"], Mapping) else {}
    guess = question["guess"] if question["guess"] in GUESSES else "none"
    result = await run(desk, question, claim, known.get(claim.name, 0), "one")
    if claim.name in known:  # whoever has seen the answer does not guess
        guess = guesses.get(claim.name)
    return [{"name": claim.name, "seed": result.seed, "guess": guess}]


async def measure_again(desk: Desk, question: Mapping[str, Any]) -> list[Any]:
    """The claim that is shown, with the next seed; it has no guess any more."""
    claim = chosen(question)
    seed = (seeds(question).get(claim.name, -1) + 1) % (MOST_SEED + 1)
    result = await run(desk, question, claim, seed, "one")
    return [{"name": claim.name, "seed": result.seed, "guess": None}]


async def measure_next(desk: Desk, question: Mapping[str, Any]) -> list[Any]:
    """What a link says was measured, then, where that is wanted, the rest of the topic.

    Raises:
        InsteadError: a measurement failed; the rest is not measured either.
    """
    known = seeds(question)
    wanted = [(CLAIMS[name], seed) for name, seed in known.items()]
    if question["all"] is True:
        wanted += [(CLAIMS[name], 0) for name in topic_of(question) if name not in known]
    guesses = question["guesses"] if isinstance(question["guesses"], Mapping) else {}
    for claim, seed in wanted:
        if lacks(desk, claim) or found(desk, question, claim, seed):
            continue
        try:
            result = await run(desk, question, claim, seed, "all")
        except InputError as error:
            raise InsteadError(str(error), stopped()) from error
        guess = guesses.get(claim.name)
        done = {"name": claim.name, "seed": result.seed, "guess": guess}
        return [done, gr.skip(), gr.skip()]
    return stopped()


def stopped() -> list[Any]:
    """Nothing new, and nothing is measured after it."""
    return [gr.skip(), False, gr.Timer(active=False)]


def found(desk: Desk, question: Mapping[str, Any], claim: Claim, seed: int) -> Result | None:
    """What was measured before."""
    return None if lacks(desk, claim) else desk.found(claim, seed, model_of(question))


def lacks(desk: Desk, claim: Claim) -> bool:
    """Whether no installed model can answer."""
    return claim.head is not None and answering(desk.session, "", claim.head) is None


# --- what is shown --------------------------------------------------------------------------------


def show(desk: Desk, question: Mapping[str, Any]) -> list[Any]:
    """The card, its numbers, the score, all verdicts, the code; nothing before the lab is seen.

    First what the choices should be where they do not go together, beside what they were: by now
    the visitor may have chosen something else.
    """
    if question["model"] is None:
        return [gr.skip()] * SHOWN
    claim, known, outside = chosen(question), seeds(question), left(question)
    seed = known.get(claim.name, 0)
    guesses = question["guesses"] if isinstance(question["guesses"], Mapping) else {}
    results = {name: found(desk, question, CLAIMS[name], seed) for name, seed in known.items()}
    result, guess = results.get(claim.name), guesses.get(claim.name)
    judged = {name: each for name, each in results.items() if each and not each.doubt}
    guessed = [name for name in judged if guesses.get(name) in ("right", "wrong", "partly")]
    hits = sum(hit(guesses[name], judged[name].verdict) for name in guessed)
    score = Wording("Your guesses: {0} of {1} right.", hits, len(guessed)) if guessed else ""
    todo = any(each is None and not lacks(desk, CLAIMS[name]) for name, each in results.items())
    chart = None
    if result:
        numbers = [Measured(label=n.label, value=n.value, unit=n.unit) for n in result.numbers]
        chart = measured(numbers, statement=claim.name)
    asked = [question["topic"], question["claim"], question["only"]]
    meant = ["" if outside else asked[0], claim.name, [] if outside else asked[2]]
    return [
        {"asked": asked, "meant": meant} if meant != asked else None,
        # What was guessed the page takes from the card, if it is still about what is chosen.
        gr.Radio(interactive=not result and not lacks(desk, claim)),
        gr.Button(interactive=bool(result) and claim.drawn),
        card(claim, result, guess, lacks(desk, claim)),
        chart,
        score,
        verdicts(topic_of(question), results, guesses),
        code_lines(claim, seed, desk.key(claim, seed, model_of(question))[2]),
        gr.Timer(active=True) if todo else gr.skip(),
        # From now on the visitor chooses, not the link.
        [meant[0], meant[2]],
    ]


def card(claim: Claim, result: Result | None, guess: Any, lacking: bool) -> dict[str, Any]:
    """The value of a :class:`app.labs.claims.card.Card`."""
    who = [Wording("article {0}", number) for number in claim.articles]
    lines = [
        (Wording("The measurement"), claim.how),
        (Wording("The rule"), claim.rule.text),
    ]
    value: dict[str, Any] = {
        "name": claim.name,
        "measured": result is not None,
        "guessed": guess,
        "family": claim.family,
        "statement": claim.statement,
        "articles": who,
        "said": claim.said,
        "verdict": None,
        "note": [Wording("Not measurable here yet"), missing(claim.head or "")]
        if lacking
        else None,
        "lines": lines,
    }
    if result is None:
        return value
    value["verdict"] = result.verdict
    value["stamp"] = [SIGNS[result.verdict], VERDICTS[result.verdict]]
    value["note"] = ["", result.doubt] if result.doubt else None
    if guess in ("right", "wrong", "partly") and not result.doubt:
        right = hit(guess, result.verdict)
        said = Wording("Your guess was right."), Wording("Your guess was wrong.")
        value["guess"] = said[0] if right else said[1]
    value["lines"] = [
        *reversed(lines),
        (Wording("Why"), claim.why),
        (Wording("Source"), claim.source),
    ]
    value["small"] = [
        *([Wording("seed {0}", result.seed)] if claim.drawn else []),
        *([Wording("answered by {0}", result.model)] if result.model else []),
    ]
    return value


def verdicts(
    names: list[str], results: Mapping[str, Result | None], guesses: Mapping[str, Any]
) -> dict[str, Any]:
    """Every claim of the topic, and every number that was measured of it, a row for each."""
    rows: list[list[Any]] = []
    for name in dict.fromkeys([*names, *results]):
        claim, result = CLAIMS[name], results.get(name)
        label = GUESSES.get(str(guesses.get(name)))
        head = [claim.statement, claim.family, VERDICTS[result.verdict] if result else None, label]
        if result is None:
            rows.append([*head, None, None, None, None])
            continue
        for number in result.numbers:
            value = [number.value, readable(number.value, "")]
            unit = UNITS.get(number.unit, number.unit) or None
            rows.append([*head, number.label, value, unit, result.seed])
    return table(
        Wording("Verdicts and numbers so far"),
        [
            Wording("Statement"),
            Wording("Family"),
            Wording("Verdict"),
            Wording("Your guess"),
            Wording("What"),
            Wording("Value"),
            Wording("Unit"),
            Wording("Seed"),
        ],
        rows,
        messages=[0, 3],
    )


def articles() -> dict[str, Any]:
    """The articles by their numbers."""
    return table(
        Wording("The articles"),
        [Wording("Article"), Wording("Title")],
        [[number, title] for number, title in enumerate(TITLES, 1)],
    )
