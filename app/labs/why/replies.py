"""What the Why lab shows: from the values of its controls to new ones. Plain values in and out."""

from collections.abc import Mapping
from hashlib import blake2s
from typing import Any

import gradio as gr

from app.labs.why import answers as why
from app.labs.why import words
from app.labs.why.methods import METHODS
from app.labs.why.service import Explainer, Progress
from app.labs.why.tries import FIRST, TRIES
from app.parts.controls import InsteadError, choices
from app.serving.ask import MOST_SEED, whole_number
from app.serving.desk import StoppedError
from app.serving.locales import spoken
from core_models import InputError
from viz.svg import Wording
from viz.why import Attributed, attributions

DONE = "done"
MOST_NOTES = 4
SECOND = Wording("Second text (the first one is the sentence above)")
QUESTION = Wording("Question about the sentence above")
NOTHING = Wording("nothing in particular")
TOLD = (
    *("shown", "tries", *FIRST, "said", "working", "chart", "strongest"),
    *(f"note {n}" for n in range(MOST_NOTES)),
    *("total", "agreement", "code", "clock", "cancel", "again"),
)
"""What an answer of `show` fills, in this order."""
EMPTY = dict.fromkeys(("said", "strongest", "total", "code"), "") | {
    "chart": None,
    "agreement": None,
}


async def show(explainer: Explainer, question: Mapping[str, Any]) -> list[Any]:
    """The explanation, or how far it is; where nothing can be explained, why, and what can."""
    if not ready(question):
        return tell()
    shown = question["shown"]
    try:
        wanted = why.read(question)
        now = mark(wanted)
        if shown == [*now, DONE]:
            return tell(**idle())
        if question["given_up"] == now:
            explainer.desk.leave(question["visitor"])
            return tell(**idle(given_up=True))
        model, asked, scene = await explainer.plan(wanted)
        found = await explainer.explain(model, asked, question["visitor"])
    except StoppedError:
        return tell(**idle(given_up=True))
    except InputError as error:
        able = await explainer.able(str(question["sentence"].get("model")))
        shown = tell(shown=None, **kinds(able, question), **EMPTY, **idle())
        raise InsteadError(str(error), shown) from error
    if not isinstance(found, Progress):
        return tell(
            shown=[*now, DONE],
            **offers(scene, question),
            **pictures(scene, found),
            code=explainer.code(scene, asked),
            **idle(),
        )
    same = isinstance(shown, list) and shown[:1] == now[:1]
    changed = {} if same else {**offers(scene, question), **EMPTY}
    return tell(**changed, **({} if shown == now else {"shown": now}), **busy(found))


async def offered(explainer: Explainer, question: Mapping[str, Any]) -> list[Any]:
    """What can be chosen, in the order of `FIRST`."""
    found: dict[str, Any] = {}
    if ready(question):
        try:
            _, _, scene = await explainer.plan(why.read(question))
            found = offers(scene, question)
        except InputError as error:
            able = await explainer.able(str(question["sentence"].get("model")))
            found = kinds(able, question)
            raise InsteadError(
                str(error), [found.get(name, gr.skip()) for name in FIRST]
            ) from error
    return [found.get(name, gr.skip()) for name in FIRST]


def ready(question: Mapping[str, Any]) -> bool:
    """Whether the lab has been seen, and what is chosen belongs to its sentence."""
    sentence = question["sentence"]
    return isinstance(sentence, Mapping) and question["of"] == sentence


def mark(wanted: why.Wanted) -> list[str]:
    """A name for a question: of what is explained, and of how."""
    parts = ((*vars(wanted).values(),)[:-2], (wanted.baseline, wanted.options))
    return [blake2s(repr(part).encode(), digest_size=8).hexdigest() for part in parts]


def tell(**values: Any) -> list[Any]:
    """Values in the order of `TOLD`; what is not among them stays as it is."""
    return [values.get(name, gr.skip()) for name in TOLD]


def idle(*, given_up: bool = False) -> dict[str, Any]:
    """Nothing is computed; what is given up can be asked for again."""
    return {
        "working": "",
        "clock": gr.Timer(active=False),
        "cancel": gr.Button(visible=False),
        "again": gr.Button(visible=given_up),
    }


def busy(found: Progress) -> dict[str, Any]:
    """How far a computation is."""
    return {
        "working": progress(found),
        "clock": gr.Timer(active=True),
        "cancel": gr.Button(visible=True),
        "again": gr.Button(visible=False),
    }


def progress(found: Progress) -> str:
    """How far a computation is, in words that change seldom: they are read out."""
    if found.ahead:
        return Wording("{0} before you", found.ahead)
    return Wording("{0} % are computed.", 10 * int(10 * found.share))


def kinds(able: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """What can be asked of the model, and what of that is chosen."""
    language = str(question["sentence"].get("language"))
    titles = {kind: words.KINDS[kind] for kind in able["kinds"]}
    if able["class_head"] in words.PAIR_HEADS:
        titles["class"] = words.PAIR_HEADS[able["class_head"]]
    kind = able.get("kind") or question["kind"] or next(iter(titles), "")
    tries = [
        (spoken(name, language), str(name))
        for name, (_, _, chosen) in TRIES.items()
        if chosen.get("kind", kind) in (kind, *titles)
    ]
    second = QUESTION if kind in ("start", "end") else SECOND
    return {
        "tries": gr.Radio(choices=tries),
        "kind": gr.Radio(choices=choices(titles, language, kind, str(question["kind"]))),
        "second": gr.Textbox(label=spoken(second, language), visible=seen(kind in why.PAIRED)),
    }


def seen(wanted: bool) -> Any:
    """Hidden components keep their values."""
    return True if wanted else "hidden"


def offers(scene: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """What else can be chosen; a choice that is made stays as it is."""
    language = str(question["sentence"].get("language"))

    def dropdown(name: str, options: Mapping[str, str], chosen: Any, visible: bool) -> Any:
        option = "" if chosen is None else f"#{chosen}"
        found = choices(options, language, option, str(question[name]))
        return gr.Dropdown(choices=found, visible=seen(visible))

    places = {f"#{p}": f"{p}: {scene['tokens'][p]['text']}" for p in scene["places"]}
    named = {f"#{c['index']}": title(scene, c) for c in scene["choices"]}
    rivals = {n: text for n, text in named.items() if n != f"#{scene['answer']}"}
    rival = len(named) > 1 and scene["head"] not in ("replaced_token", "multilabel")
    single = scene["kind"] != "score" and scene["against"] is None
    notes = [*scene["notes"], *[""] * MOST_NOTES][:MOST_NOTES]
    return {
        **kinds(scene, question),
        "position": dropdown("position", places, scene["position"], len(places) > 1),
        "word": dropdown("word", named, scene["answer"], bool(named)),
        "against": dropdown("against", {"": NOTHING, **rivals}, scene["against"], rival),
        "scale": gr.Dropdown(visible=seen(single)),
        **{f"note {n}": note for n, note in enumerate(notes)},
    }


def title(scene: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    """An answer and its probability."""
    name, chance = words.name_of(scene, choice["index"]), words.percent(choice["probability"])
    if choice["original"]:
        return Wording("{0} · {1} (as written)", name, chance)
    return Wording("{0} · {1}", name, chance)


def pictures(scene: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The explanation."""
    one_place = scene["kind"] in ("piece", "replaced", "tag")
    tokens = [
        Attributed(
            text=token["text"],
            read=token["read"] if token["changed"] else token["text"],
            second=token["number"] == 1,
            asked=one_place and token["position"] == scene["position"],
        )
        for token in scene["tokens"]
    ]
    named = Wording("{0}: {1}", scene["model"], words.asked(scene))
    bars = {words.TITLES[name]: found["methods"][name] for name in METHODS}
    return {
        "said": words.headline(scene, found["value"]),
        "chart": attributions(tokens, bars, title=named),
        "strongest": words.strongest(scene, found["methods"]["integrated"]),
        "total": words.total(found),
        "agreement": words.agreement_table(found),
    }


async def check(explainer: Explainer, question: Mapping[str, Any]) -> list[Any]:
    """The check of exactly the question that it was asked for, or how far it is."""
    seed, of = read_draw(question["draw"])
    visitor = f"{question['visitor']}/check"
    if not of:  # never asked for, or given up
        explainer.desk.leave(visitor)
        return [*ended(), gr.skip(), gr.skip()]
    if not ready(question):
        return [gr.skip()] * 5
    wanted = why.read(question)
    if [*mark(wanted), DONE] != of:
        explainer.desk.leave(visitor)
        return [*ended(), "", None]
    try:
        model, asked, _ = await explainer.plan(wanted)
        found = await explainer.check(model, asked, seed, visitor)
    except StoppedError:
        return [*ended(), gr.skip(), gr.skip()]
    except InputError as error:
        raise InsteadError(str(error), [*ended(), "", None]) from error
    if isinstance(found, Progress):
        clock, cancel = gr.Timer(active=True), gr.Button(visible=True)
        return [progress(found), clock, cancel, gr.skip(), gr.skip()]
    return [*ended(), words.verdict(found), words.check_table(found)]


def ended() -> list[Any]:
    """No check is computed."""
    return ["", gr.Timer(active=False), gr.Button(visible=False)]


def read_draw(value: Any) -> tuple[int, Any]:
    """How often a check was asked for, and of which question; None for none."""
    if not isinstance(value, list) or len(value) != 2:
        return 0, None
    return whole_number(value[0], "seed", 0, MOST_SEED), value[1]
