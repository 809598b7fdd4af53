"""What the Permutation lab says and draws of an answer. No Gradio in it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from app.labs.permutation.chances import OWN
from app.parts.plain import sentences, table
from app.serving.pieces import cut_note, unread_note, unread_of
from viz import maps
from viz.permutation import Target, chances
from viz.svg import Wording
from viz.words import percent

if TYPE_CHECKING:
    from app.labs.permutation.lab import Asked

NAMES = {
    OWN: Wording("Your order"),
    "leak": Wording("Your order, with the leak (wrong)"),
    "forgotten": Wording("Your order, without the memory"),
    "left": Wording("Left to right"),
    "right": Wording("Right to left"),
    "next": Wording("Next seed"),
    "after": Wording("Seed after"),
}
STREAMS = {
    "query": Wording("Query stream"),
    "content": Wording("Content stream"),
}
LEAK = Wording(
    "Wrong on purpose: with the leak on, every query sees the piece it is asked for. With one "
    "stream only there would be no way out: a state that knows its own piece has nothing to "
    "predict, and one that does not is no use to the others. Hence two streams."
)
LACKING = Wording(
    "The grids need no weights, but probabilities and attention need a model with two streams, and "
    "none is installed. Train one: choose XLNet in the Train tab, or run {0}",
    "python -m zoo build xlnet-mini",
)


def notes(asked: "Asked") -> str:
    """What to know of the order and of who answers."""
    encoding = asked.sentence.encoding
    found: list[str | None] = [cut_note(encoding.truncated, encoding.special.count(False))]
    if asked.reader not in (None, asked.bar):
        text = "{0} has one stream only, so {1} answers, with its own pieces."
        found.append(Wording(text, asked.bar, asked.reader))
    found.append(unread_note(asked.reader or asked.bar, unread_of(asked.sentence.tokens)))
    if asked.before is not None:
        before = asked.before.encoding
        if before.truncated:
            text = "The sentence before is long: its first {0} pieces are remembered."
            found.append(Wording(text, before.special.count(False)))
        found.append(unread_note(asked.reader or asked.bar, unread_of(asked.before.tokens)))
    if not asked.setting.fits:
        found.append(
            Wording("The order that was kept is not one of these pieces: another is drawn.")
        )
    if asked.setting.leak:
        found.append(LEAK)
    return sentences(*found)


def bits(judged: Mapping[str, Any]) -> str:
    """What the orders cost."""
    whole, framed = judged["whole"], judged["bits"]
    found = whole or {name: value for name, value in framed.items() if name != "forgotten"}
    own, least = (f"{value:.1f}" for value in (found[OWN], min(found.values())))
    if own == least:
        text = (
            "The whole sentence: {0} bits in your order; none of the other orders is cheaper."
            if whole
            else "The framed pieces together: {0} bits in your order; none of the other orders is "
            "cheaper."
        )
        first = Wording(text, own)
    else:
        text = (
            "The whole sentence: {0} bits in your order; the cheapest order here needs {1}."
            if whole
            else "The framed pieces together: {0} bits in your order; the cheapest order here "
            "needs {1}."
        )
        first = Wording(text, own, least)
    if "forgotten" not in framed:
        return first
    text = "With the memory the framed pieces need {0} bits, without it {1}."
    return sentences(first, Wording(text, f"{framed[OWN]:.1f}", f"{framed['forgotten']:.1f}"))


def probabilities(judged: Mapping[str, Any], names: Sequence[str], reader: str) -> go.Figure:
    """How probable each target is under each order."""
    extra = [name for name in ("leak", "forgotten") if judged["rows"][0][name] is not None]
    targets = [
        Target(
            position=row["position"],
            piece=names[row["position"]],
            chances={NAMES[name]: value for name, value in row["chances"].items()}
            | {NAMES[name]: row[name] for name in extra},
        )
        for row in judged["rows"]
    ]
    sums = {Wording("Bits, these together"): judged["bits"]}
    if judged["whole"]:
        sums[Wording("Bits, whole sentence")] = judged["whole"]
    return chances(
        targets,
        own=[NAMES[name] for name in (OWN, *extra)],
        others=[NAMES[name] for name in judged["orders"] if name != OWN],
        bits={
            what: {NAMES[name]: round(value, 2) for name, value in found.items()}
            for what, found in sums.items()
        },
        title=Wording("{0}: probability of each framed piece", reader),
    )


def guesses(judged: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The best guesses at every target."""
    leaking = judged["rows"][0]["leak"] is not None
    rows = [
        [
            row["position"],
            names[row["position"]],
            rank,
            guess["text"],
            [guess["chance"], percent(guess["chance"])],
        ]
        for row in judged["rows"]
        for rank, guess in enumerate(row["guesses"], start=1)
    ]
    columns = [Wording("Position"), Wording("To predict"), Wording("Rank"), Wording("Guess")]
    columns.append(Wording("Probability"))
    title = Wording("Best guesses, with the leak") if leaking else Wording("Its best guesses")
    return table(title, columns, rows)


def look(
    seen: Mapping[str, Any], names: Sequence[str], stream: str, drawn: Mapping[str, Any]
) -> go.Figure:
    """Where the rows of a stream look in one head; remembered pieces come first."""
    rows = [row["position"] for row in drawn[stream]]
    return maps.draw(
        maps.Map(
            title=Wording(
                "{0}: {1}",
                STREAMS[stream],
                Wording("layer {0}, head {1}", seen["layer"] + 1, seen["head"] + 1),
            ),
            values=np.array(seen[stream][: len(rows)]),
            rows=[f"{n} {names[n]}" for n in rows],
            columns=[*(f"⟨{text}⟩" for text in seen["remembered"]), *names],
            share=True,
            top=1.0,
        )
    )
