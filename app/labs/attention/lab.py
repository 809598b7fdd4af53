"""The Attention lab: which words look at which, in every head of a model.

The sentence, the model and the marks come from the sentence block. Choosing another head, hiding
tokens and drawing work on the kept result and never run the model again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import sha256
from time import monotonic_ns
from typing import Any

import gradio as gr

import viz
from app.labs.attention import fold
from app.labs.attention.answers import combined, norms, one_head, rolled
from app.labs.attention.asked import MEAN, Asked, Shown, one_of, read_heads, written
from app.labs.attention.compare import compared
from app.labs.attention.layout import Controls, lay_out, setting
from app.labs.attention.prediction import switched
from app.labs.attention.products import multiplied
from app.labs.attention.scene import Lab, describe, read_scene, second_of
from app.page.sentence import Shared
from app.parts.controls import answer, remember
from app.serving.session import Session
from core_models import InputError
from viz.svg import Wording

MODES: dict[str, Callable[[Asked], Awaitable[Shown]]] = {
    "heads": one_head,
    "combined": combined,
    "rollout": rolled,
    "norms": norms,
    "off": switched,
    "products": multiplied,
    "compare": compared,
}
CHOICES = ("layer", "head", "token", "upto", "gap", "query", "other", "place", "off", "shared")
"""What is asked, and may come back with other choices or another value."""
HIDDEN = ("picks", "off", "drawn")
"""Set by the page itself, with one question for all that an act sets."""
LINES = ("said", "switched", "swept", "note", "code", "segments")
PICTURES = ("lines", "first", "second_map", "steps")
LINK = {
    "m": "mode",
    "l": "layer",
    "h": "head",
    "x": "hide",
    "o": "own",
    "s": "second",
    "f": "part",
    "p": "picks",
    "w": "how",
    "t": "token",
    "n": "upto",
    "z": "off",
    "u": "shared",
    "g": "gap",
    "q": "query",
    "c": "other",
    "y": "what",
    "a": "place",
    "d": "sweep",
}
"""Names in links."""
USES = {
    "table": Wording("The model adds an embedding of the segment to every token:"),
    "scores": Wording("The model asks in every layer whether two tokens share a segment:"),
    "none": Wording("This model makes no difference between segments:"),
}
SETTLE = f"""(settled, acted, ...values) => {{
  const [, answered, changes] = JSON.parse(settled);
  const names = {list(CHOICES)};
  const now = (name) => values[names.indexOf(name)];
  const other = ([name, asked, found]) => now(name) !== asked && now(name) !== found;
  const choices = names.map((name) => {{
    const change = changes.find((each) => each[0] === name && each[1] === now(name));
    return change ? change[2] : {{ __type__: 'update' }};
  }});
  const told = answered === acted && !changes.some(other);
  return [told ? {{ __type__: 'update' }} : acted + 1, ...choices];
}}"""
"""Ask again where the answer is not of what the page holds now.

Of acts that follow each other quickly Gradio 6.31 may ask only for the first; and what an answer
finds is set while the next question is on its way, which may be about a model without that layer.
"""
PICK = """({ picked, kind }, layer, head, picks, off, acted) => {
  if (kind === 'picked') picks = picked.own || 'none';
  else if (kind === 'off') off = picked.own;
  else ({ layer, head } = picked);
  return [layer, head, picks, off, acted + 1];
}"""


def build(shared: Shared) -> Controls:
    """Lay the lab out; what it shows comes from the sentence that all labs share."""
    return lay_out()


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice with what its mode shows: one question and one answer for all."""
    c, lab = controls, Lab(session)
    given = {
        **c.shown,
        **{name: c.asked[name] for name in CHOICES},
        "clock": c.clock,
        "settled": c.settled,
    }
    acts = {name: part for name, part in c.asked.items() if name not in HIDDEN}
    # Pasting is no `input` of a text box.
    triggers = [part.change if name == "second" else part.input for name, part in acts.items()]
    answer(
        [c.scene.change, c.acted.change, c.clock.tick, *triggers],
        partial(show, lab, list(given)),
        {"scene": c.scene, "acted": c.acted, **c.asked},
        list(given.values()),
        c.problem,
    )
    choices = [c.asked[name] for name in CHOICES]
    c.settled.change(None, [c.settled, c.acted, *choices], [c.acted, *choices], js=SETTLE)
    several = [c.asked[name] for name in ("layer", "head", "picks", "off")]
    c.shown["chosen"].pick(  # type: ignore[attr-defined]
        None, [c.shown["chosen"], *several, c.acted], [*several, c.acted], js=PICK
    )
    for preset, button in c.presets:
        changed = [c.asked[name] for name in preset.values]
        button.click(None, c.acted, [*changed, c.acted], js=setting(preset))
    fold.wire(c.seen, {name: c.asked[name] for name in ("second", "hide")}, session)
    remember("attention", {short: c.asked[name] for short, name in LINK.items()})


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(lab: Lab, names: list[str], question: Mapping[str, Any]) -> list[Any]:
    """One new value for each of the named parts."""
    if not isinstance(question["scene"], Mapping):  # nobody has seen the lab yet
        return [gr.skip()] * len(names)
    found = await look(lab, question)
    return [_update(name, found, question) for name in names]


async def look(lab: Lab, question: Mapping[str, Any]) -> Shown:
    """What there is to see, by the name of the part that shows it."""
    ask = read_scene({**question["scene"], "second": question["second"]})
    result = await lab.attention(ask)
    values = dict(question) if second_of(ask) else {**question, "part": "all"}
    tokens = describe(result.tokens, result.seen, ask)
    asked = Asked(lab=lab, ask=ask, result=result, tokens=tokens, values=values)
    mode = MODES[one_of(question, "mode", list(MODES))]
    try:
        found = await mode(asked)
    except InputError as error:  # the mode has nothing to show; the grid has
        found = {"said": str(error), "chosen": unanswered(asked)}
    found |= await grid(asked)
    layer, head = found.get("at") or (None, None)
    if "at" in found:
        at = {
            "layer": MEAN if layer is None else layer,
            "head": MEAN if head is None else head,
        }
        for name, value in at.items():
            found[name] = {**found.get(name, {}), "value": value}
        found.setdefault("chosen", {"cells": ["{layer}.{head}".format(**at)], "kind": "one"})
    if second_of(ask):
        found["segments"] = await segments(asked)
    return found


def unanswered(asked: Asked) -> Shown:
    """The marked cells of a mode that has nothing to show: a click is still one of this mode."""
    off = asked.values["off"]
    if asked.values["mode"] != "off" or not isinstance(off, str):
        return {"cells": [], "kind": "one"}
    cells = written(read_heads(asked.values, "off", asked.shape))
    return {"cells": cells, "own": cells, "kind": "off"}


async def grid(asked: Asked) -> Shown:
    """All heads, and which there are to choose; nothing where the page has them."""
    values, ask = asked.values, asked.ask
    hide, own = values["hide"] is True, values["own"] is True
    model = await asyncio.to_thread(asked.lab.session.model, ask.model)
    key = sha256(repr((ask, hide, own, asked.lab.session.number(model))).encode()).hexdigest()
    if key == values["drawn"]:
        return {}
    # Shrinking 144 heads of 512 tokens takes a quarter of a second: not on the event loop.
    small = await asyncio.to_thread(
        viz.overview, asked.result.probabilities, asked.special, hide=hide, own=own
    )
    numbers = zip(("layer", "head"), asked.shape, strict=True)
    return {
        "grid": {
            **small.to_json(),
            "labels": asked.labels,
            "model": ask.model,
            "own": own,
            "paired": bool(second_of(ask)),
        },
        "drawn": key,
        **{
            name: {"choices": [*((str(n + 1), n) for n in range(count)), ("⌀", MEAN)]}
            for name, count in numbers
        },
    }


async def segments(asked: Asked) -> Wording:
    """Which tokens of a pair are in which segment, and what the model makes of it."""
    found = await asked.lab.segments(asked.ask)
    listed: dict[int, list[str]] = {}
    for label, segment in zip(asked.labels, found["ids"], strict=True):
        listed.setdefault(segment, []).append(label)
    parts = "; ".join(f"{n} \N{EN DASH} {' '.join(labels)}" for n, labels in sorted(listed.items()))
    return Wording("{0} {1}", USES[found["use"]], parts)


def _update(name: str, found: Shown, question: Mapping[str, Any]) -> Any:
    """The new value of one part."""
    if name == "settled":
        return settled(found, question)
    if name == "clock":
        return gr.Timer(active=bool(found.get("more")))
    if name in LINES:
        return found.get(name, "")
    if name in PICTURES:
        return found.get(name)
    if name not in found:
        return gr.skip()
    if name not in CHOICES:
        return found[name]
    changes = {key: value for key, value in found[name].items() if key != "value"}
    return gr.update(**changes) if changes else gr.skip()


def settled(found: Shown, question: Mapping[str, Any]) -> Any:
    """What became of values that stand for another one; the page takes it unless they changed.

    The visitor may have made another choice while the answer was under way.
    """
    changes = [
        [name, question[name], found[name]["value"]]
        for name in CHOICES
        if found.get(name, {}).get("value", question[name]) != question[name]
    ]
    return json.dumps([monotonic_ns(), question["acted"], changes])
