"""What the Spans lab was asked, read and checked, and what it says of that. No Gradio in it."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import core_models as cm
from app.labs.spans import answers as spans
from app.labs.spans.answers import NEEDED
from app.parts.plain import sentences
from app.serving.ask import clean_marks, clean_name, clean_text
from app.serving.pieces import cut_note, unread_note, unread_of
from app.serving.session import Session
from viz.svg import Wording
from viz.words import percent


def readers(session: Session) -> list[str]:
    """Every installed model with both heads."""
    return [i.name for i in session.models() if all(name in i.heads for name in NEEDED)]


class Asked(NamedTuple):
    """A question, read."""

    bar: str
    """The model of the sentence block."""
    readers: list[str]
    reader: str | None
    """Who answers; None where no model has both heads."""
    model: cm.Model
    """The reader, or the model of the sentence block where there is none."""
    sentence: spans.Cut
    hidden: list[spans.Span]
    """What the visitor has hidden, or the one span that stands in for it."""
    usual: bool
    """Nothing is hidden in the sentence block."""
    setting: spans.Setting

    @property
    def run(self) -> int:
        """Which of the hidden runs is looked at."""
        return min(self.setting.run, len(self.hidden) - 1)


def read(session: Session, question: Mapping[str, Any]) -> Asked:
    """Who reads the sentence, in which pieces, and what of it is hidden."""
    given, setting = question["sentence"], spans.read_setting(question)
    bar = clean_name(given.get("model"))
    model = session.model(bar)
    able = readers(session)
    reader: str | None = None
    if (wanted := question.get("reader")) in able:
        reader = wanted
    elif all(head in model.heads for head in NEEDED):
        reader = bar
    elif able:
        reader = able[0]
    text = clean_text(given.get("text"))
    marks = clean_marks(given.get("marks", ()))
    characters = []
    if marks:
        # The sentence block may cut the text into other pieces: what is hidden are characters.
        tokens = session.sentence(text, bar).tokens
        characters = [
            (tokens[mark.position].start, tokens[mark.position].end)
            for mark in marks
            if mark.position < len(tokens) and not tokens[mark.position].special
        ]
    if reader not in (None, bar):
        model = session.model(reader)
    sentence = spans.cut(model, text)
    found = spans.hidden_runs(sentence, characters)
    hidden = found or [spans.usual(sentence)]
    return Asked(bar, able, reader, model, sentence, hidden, not found, setting)


def say_notes(asked: Asked) -> str:
    """What to know of the span and of who answers."""
    span = spans.describe(asked.sentence, asked.hidden[asked.run])
    said: list[str] = []
    if asked.usual:
        said.append(
            Wording(
                "Nothing is hidden above, so words from the middle are taken here. Hide a "
                "run of words above, or choose one here."
            )
        )
    if span.edge:
        said.append(
            Wording(
                "This span lies at the edge of the text. Pretraining asks the boundary head only "
                "where a word stands on either side, so here only the masked-token head answers."
            )
        )
    start, stop = asked.hidden[asked.run]
    if stop - start > spans.MOST_PIECES:
        text = "This span has {0} pieces: only its first {1} are shown."
        said.append(Wording(text, stop - start, spans.MOST_PIECES))
    if not span.whole:
        said.append(Wording("This span cuts a word. SpanBERT hides whole words."))
    if asked.reader not in (None, asked.bar):
        text = "{0} does not have both heads, so {1} answers, with its own pieces."
        said.append(Wording(text, asked.bar, asked.reader))
        said.append(unread_note(asked.reader, unread_of(asked.sentence.tokens)) or "")
    encoding = asked.sentence.encoding
    return sentences(*said, cut_note(encoding.truncated, encoding.special.count(False)))


def say_heads(told: spans.Told) -> str:
    """What both heads give the real words on average, and the loss of the span."""
    own, boundary = (spans.mean_loss(told, head) for head in NEEDED)
    if own is None and any(told.unread):
        return Wording(
            "The model has no piece for the real words here, so that it cannot answer them."
        )
    if own is None:
        return Wording("The text itself has gaps here: nobody knows the real words.")
    if boundary is None:
        text = "On average the masked-token head gives the real words {0}."
        return Wording(text, percent(math.exp(-own)))
    return sentences(
        Wording(
            "On average (geometric mean) the masked-token head gives the real words {0}, the "
            "boundary head {1}.",
            percent(math.exp(-own)),
            percent(math.exp(-boundary)),
        ),
        Wording(
            "Loss of the span (means in nats): {0} + {1} = {2}, masked token + span boundary.",
            f"{own:.2f}",
            f"{boundary:.2f}",
            f"{own + boundary:.2f}",
        ),
    )


def say_moved(told: spans.Told, edge: bool) -> str:
    """How far other words inside move the states."""
    if told.moved is None:
        return ""
    far = (told.moved.before, told.moved.after, told.moved.inside)
    before, after, inside = (f"{100 * n:.0f}\u00a0%" if n > 1 else percent(n) for n in far)
    if edge:
        return Wording("The last states inside the span moved by {0} of their length.", inside)
    return Wording(
        "The last states of the two boundary tokens moved by {0} and {1} of their length, those "
        "inside by {2}.",
        before,
        after,
        inside,
    )
