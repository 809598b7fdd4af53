"""The places of the page and the labs in them: the only table that knows every lab.

A place answers one kind of question; its labs stand in a second row of names. A new lab is a folder
in ``app/labs`` and one line here.
"""

from types import ModuleType
from typing import Any, Literal, NamedTuple

import gradio as gr

from app.labs.attention import lab as attention
from app.labs.budget import lab as budget
from app.labs.claims import lab as claims
from app.labs.forge import lab as forge
from app.labs.ladder import lab as ladder
from app.labs.mask import lab as mask
from app.labs.meaning import lab as meaning
from app.labs.pairs import lab as pairs
from app.labs.permutation import lab as permutation
from app.labs.spans import lab as spans
from app.labs.terms import lab as terms
from app.labs.timeline import lab as timeline
from app.labs.tokenizers import lab as tokenizers
from app.labs.train import lab as train
from app.labs.unmasking import lab as unmasking
from app.labs.why import lab as why
from app.page.sentence import Shared
from app.parts.views import view
from app.serving.session import Session

Reads = Literal["words", "text", "model", "nothing"]
"""What a lab takes from the sentence block, which shows no more than that above it: the text with
its hidden words and the model; the text and the model; the model alone; nothing."""


class Lab(NamedTuple):
    """A lab, as the page names it."""

    name: str
    """In links (``tab=``, ``lab-...``) and ids; it never changes."""
    label: str
    """In the row of names."""
    reads: Reads
    module: ModuleType
    """Has ``build(shared)`` and ``wire(parts, shared, session)``; where it needs to be there before
    it is opened, ``SCRIPTS`` that load with the page and ``outside(shared, session)``."""


class Place(NamedTuple):
    """Labs that answer one kind of question."""

    name: str
    label: str
    line: str
    """The question."""
    labs: tuple[Lab, ...]


PLACES = (
    Place(
        "predict",
        "Predict",
        "Which word does a model expect here? Click a word to hide it.",
        (Lab("mask", "Fill the gap", "words", mask),),
    ),
    Place(
        "inside",
        "Look inside",
        "What does it look at, and what becomes of a word on its way?",
        (
            Lab("attention", "Attention", "words", attention),
            Lab("meaning", "Meaning", "model", meaning),
            Lab("why", "Why this word", "words", why),
        ),
    ),
    Place(
        "learn",
        "How they learn",
        "What are they asked?",
        (
            Lab("timeline", "Masking over time", "text", timeline),
            Lab("unmasking", "Unmasking", "text", unmasking),
            Lab("spans", "Spans", "words", spans),
            Lab("pairs", "Sentence pairs", "text", pairs),
            Lab("permutation", "Permutation", "text", permutation),
            Lab("forge", "Generator and detective", "words", forge),
            Lab("terms", "Content and position", "words", terms),
            Lab("ladder", "From 2018 to 2024", "nothing", ladder),
        ),
    ),
    Place(
        "compare",
        "Compare",
        "What do models cost, how do they cut words, and which claims hold?",
        (
            Lab("budget", "Parameters", "nothing", budget),
            Lab("tokenizers", "Tokenizers", "text", tokenizers),
            Lab("claims", "Claims, measured", "model", claims),
        ),
    ),
    Place(
        "train",
        "Train",
        "Train one on this machine and watch it learn.",
        (Lab("train", "Runs", "nothing", train),),
    ),
)
LABS = tuple(lab for place in PLACES for lab in place.labs)


def build(shared: Shared) -> dict[str, Any]:
    """Lay the places out; returns what each lab consists of, by its name.

    The classes of a lab tell the page what it reads and where it is: Gradio draws the names of a
    place's labs only once the place is open (link.js).
    """
    parts: dict[str, Any] = {}
    with gr.Tabs(elem_id="tabs", overflow_behavior="wrap"):
        for place in PLACES:
            with gr.Tab(place.label, id=place.name, elem_id=f"place-{place.name}"):
                with gr.Tabs(elem_id=f"labs-{place.name}", overflow_behavior="wrap"):
                    for lab in place.labs:
                        with gr.Tab(
                            lab.label,
                            id=lab.name,
                            elem_id=f"tab-{lab.name}",
                            elem_classes=[f"reads-{lab.reads}", f"in-{place.name}"],
                        ):
                            parts[lab.name] = lab.module.build(shared)
                view("line", place.line, elem_id=f"line-{place.name}")
    return parts


def outside(shared: Shared, session: Session) -> None:
    """What labs have on the page beside their own panel."""
    for lab in LABS:
        if hasattr(lab.module, "outside"):
            lab.module.outside(shared, session)


def scripts() -> tuple[str, ...]:
    """Scripts of labs that load with the page."""
    return tuple(name for lab in LABS for name in getattr(lab.module, "SCRIPTS", ()))


def wire(parts: dict[str, Any], shared: Shared, session: Session) -> None:
    """Wire every lab, once all of them are laid out."""
    for lab in LABS:
        lab.module.wire(parts[lab.name], shared, session)
