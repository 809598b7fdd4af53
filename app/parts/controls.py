"""What a lab of Gradio's own components needs beside them: answers, errors, links.

A lab says what it asks (the values of named components), how it is answered (a function of those
values), and what a link keeps. It never sees revisions: :func:`answer` has one question of a lab in
flight and then sends the newest, so a late answer cannot win, and an :class:`InputError` becomes
the text of a line while everything else stays as it was.

The smallest lab::

    def build(shared: Shared) -> Controls:
        letters = gr.Number(3, label="Letters", elem_id="letters")
        return Controls(letters, Line(elem_id="said"), Line(problem=True))


    def wire(controls: Controls, shared: Shared, session: Session) -> None:
        asked = {"letters": controls.letters}
        answer([controls.letters.input], say, asked, [controls.said], controls.problem, first=True)
        remember("letters", asked)


    def say(question: Mapping[str, Any]) -> list[Any]:
        return ["a" * whole_number(question["letters"], "letters", 1, 9)]
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio.components import Component

from app.parts.plain import Kept, Line
from app.parts.views import Ours
from app.serving.ask import MOST_SEED
from app.serving.locales import spoken
from app.serving.metrics import counted
from core_models import InputError

Answering = Callable[[Mapping[str, Any]], Any]
"""From values by name to one new value for each output; a function or a coroutine."""


class InsteadError(InputError):
    """A refusal that changes what is seen: its values go to the outputs, beside its message."""

    def __init__(self, message: str, values: Sequence[Any]) -> None:
        super().__init__(message)
        self.values = list(values)


def answer(
    triggers: Sequence[Any],
    answering: Answering,
    inputs: Mapping[str, Component],
    outputs: Sequence[Component],
    problem: Line,
    *,
    first: bool = False,
    alone: bool = False,
    once: bool = False,
    patient: bool = False,
) -> Any:
    """Answer events with the values of named components; returns what ``then`` can follow.

    Args:
        triggers: ``component.input`` and its like, each one event of a visitor's act.
        answering: Runs in a thread unless it is a coroutine; with ``alone`` it is a generator
            of answers, plain or asynchronous. One value more than there are outputs is the text
            of the problem.
        inputs: What it is given, by name; beside it ``visitor``, the id of the open page.
        outputs: What its answer goes to, in this order.
        problem: Shows the message of an InputError, which leaves the outputs as they were unless
            it is an :class:`InsteadError`; None in it means that there is none. A message that
            begins with one of the names begins with the label of that component there.
        first: Whether it also answers when the lab is first seen.
        alone: One answer at a time for all visitors, in Gradio's queue.
        once: What is asked while an answer is under way is not asked: a run starts once, however
            often its button is pressed.
        patient: Whether the values have the request itself among them, as ``request``: an answering
            that waits for others can see that nobody waits for it any more.
    """
    names = list(inputs)
    problem.call(inputs)

    def told(error: InputError | None, found: Sequence[Any] = ()) -> list[Any]:
        kept = getattr(error, "values", [gr.skip()] * len(outputs)) if error else list(found)
        return [*kept, str(error) if error else ""][: len(outputs) + 1]

    async def on_event(request: gr.Request, *values: Any) -> list[Any]:
        question = dict(zip(names, values, strict=True))
        question["visitor"] = str(request.session_hash or "")
        if patient:
            question["request"] = request
        try:
            with counted(answering):
                if inspect.iscoroutinefunction(answering):
                    return told(None, await answering(question))
                return told(None, await asyncio.to_thread(answering, question))
        except InputError as error:
            return told(error)

    def on_events(*values: Any) -> Any:
        try:
            with counted(answering):
                for found in answering(dict(zip(names, values, strict=True))):
                    yield told(None, found)
        except InputError as error:
            yield told(error)

    async def on_coming_events(*values: Any) -> Any:
        try:
            with counted(answering):
                async for found in answering(dict(zip(names, values, strict=True))):
                    yield told(None, found)
        except InputError as error:
            yield told(error)

    common: dict[str, Any] = {
        "inputs": list(inputs.values()),
        "outputs": [*outputs, problem],
        "show_progress": "hidden",
        "show_progress_on": [],
        "trigger_mode": "once" if alone or once else "always_last",
        "concurrency_limit": 1 if alone else None,
        "queue": alone,
        "api_visibility": "private",
    }
    coming = on_coming_events if inspect.isasyncgenfunction(answering) else on_events
    reply = coming if alone else on_event
    if first:
        triggers = [*triggers, problem.seen]
    triggers = [_listed(_unshared(trigger)) for trigger in triggers]
    # All are one event, whose answers come in order; only what follows another answer stands alone.
    named = [trigger for trigger in triggers if not isinstance(trigger, partial)]
    for trigger in triggers:
        if isinstance(trigger, partial):
            trigger(reply, **common)
    return gr.on(named, reply, **common) if named else None


def _listed(trigger: Any) -> Any:
    """A trigger as `gr.on` takes it: an event of our parts does not say whose it is."""
    part = trigger.args[0] if isinstance(trigger, partial) else None
    if part is None or not trigger.func.has_trigger:  # one that says so, or `then`
        return trigger
    kind = ("event_name", "callback", "connection", "event_specific_args")
    told = {name: getattr(trigger.func, name) for name in kind}
    return SimpleNamespace(__self__=part, has_trigger=True, **told)


def _unshared(trigger: Any) -> Any:
    """A trigger that no other answer has: itself, or the change of a value that it counts up.

    When an answer has come, and its event happened meanwhile once more, Gradio 6.31 repeats that
    event for all that listen to it. Two answers of one event, both under way, then repeat each
    other for ever.
    """
    of_ours = isinstance(trigger, partial)
    part = trigger.args[0] if of_ours else trigger.__self__
    if part is None or (of_ours and not trigger.func.has_trigger):  # `then` has one listener
        return trigger
    event = part._id, (trigger.func if of_ours else trigger).event_name
    page = gr.context.Context.root_block
    known = page.__dict__.setdefault("answered", set())
    if event not in known:
        known.add(event)
        return trigger
    again = Kept(0)
    trigger(None, again, again, js="count => count + 1")
    return again.change


def offer(
    choice: gr.Radio,
    examples: Mapping[str, Mapping[str, Any]],
    sentence: Component,
    sets: Mapping[str, Component],
    plain: Mapping[str, Any] | None = None,
) -> None:
    """Let a choice set up examples of the sentence block, and name the one that is shown there.

    No request is made: what follows are the events ``change`` of the sentence and of what is set.

    Args:
        choice: Whose choices are the names of the examples.
        examples: By name: ``text`` and ``hide`` (words, or spans of characters) where the example
            has a sentence of its own, and values by the names of ``sets``.
        sentence: The lab's ``SentenceInput``.
        sets: What else an example sets, by name.
        plain: What is set by an example that does not say otherwise.
    """
    known = json.dumps(examples)
    names = json.dumps(list(sets))
    take = f"""(name) => {{
      const chosen = ({known})[name];
      if (chosen.text) Cloze.chooseExample(chosen);
      return {names}.map((each) => (each in chosen ? chosen : {json.dumps(plain or {})})[each]);
    }}"""
    # What is set comes before the text of an example.
    shown = f"""(moved) => (now, ...values) => {{
      const [known, names] = [{known}, {names}];
      const set = (name) => name in known && names.every((each, n) => !(each in known[name])
        || JSON.stringify(known[name][each]) === JSON.stringify(values[n]));
      const there = (name) => set(name) && (!known[name].text || Cloze.showsExample(known[name]));
      if (moved ? set(now) : Cloze.awaits(known[now]?.text)) return {{ __type__: 'update' }};
      const found = [now, ...Object.keys(known)].find(there) ?? null;
      return found === now ? {{ __type__: 'update' }} : found;
    }}"""
    choice.input(None, choice, list(sets.values()), js=take)
    asked = [choice, *sets.values()]
    sentence.change(None, asked, choice, js=f"({shown})(false)")  # type: ignore[attr-defined]
    for part in sets.values():
        part.change(None, asked, choice, js=f"({shown})(true)")  # type: ignore[attr-defined]


Implied = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By the name of a component and its value: what others are set to by that choice."""


def remember(lab: str, kept: Mapping[str, Component], implied: Implied | None = None) -> None:
    """Keep the values of components in the page's address, and put those of a link back.

    A value that is as the lab began is left out. Names with a dot belong to the switch named before
    it and are kept only while that is on: ``own`` and ``own.width`` become
    ``{"own": {"width": 8}}``. No request is made. Values of a link may be anything at all: what a
    component itself would refuse stays out, all else the lab checks as it checks all others. A list
    of texts for a component that holds one text becomes its lines, a number ``#`` and the number.

    Args:
        lab: Name of the lab in links.
        kept: Components by the name that their value has in the link.
        implied: A link that names such a choice needs none of the values that it sets.
    """
    plain = {name: part.value for name, part in kept.items()}
    limits = {name: found for name, part in kept.items() if (found := _limits(part))}
    names = json.dumps([lab, plain, limits, implied or {}])
    parts = list(kept.values())
    for part in parts:
        part.change(None, parts, None, js=f"(...values) => Cloze.keepValues({names}, values)")
    page = gr.context.Context.root_block
    assert page is not None, "remember belongs into a lab's wire()"
    put = page.load(None, None, parts, js=f"() => Cloze.keptValues({names})")
    put.then(None, None, None, js=f"() => Cloze.restored({json.dumps(lab)})")


class Open(metaclass=Ours):
    """A component whose choices or bounds an answer changes; the lab itself checks its value.

    Gradio compares a value with what its last answer has left: of a choice that was made, or an
    answer that was under way, before the page had that, no question would ever be answered.
    """

    def get_block_name(self) -> str:
        """The page draws it as what it is made from."""
        return type(self).__bases__[-1].__name__.lower()

    def preprocess(self, payload: Any) -> Any:
        """The value as it is."""
        return payload


class OpenRadio(Open, gr.Radio):
    """A radio with choices of the moment."""


class OpenSlider(Open, gr.Slider):
    """A slider with bounds of the moment."""


class OpenDropdown(Open, gr.Dropdown):
    """A dropdown with choices of the moment."""

    def postprocess(self, value: Any) -> Any:
        """The value as it is: the page may have choices that this one knows nothing of."""
        return value


class OpenCheckboxGroup(Open, gr.CheckboxGroup):
    """Checkboxes of the moment."""


class OpenNumber(Open, gr.Number):
    """A number, or nothing; the lab tells its bounds in its line, with the name of the value.

    Gradio draws null as 0, and an empty text as an empty field.
    """

    def preprocess(self, payload: Any) -> Any:
        """None for an empty field."""
        return None if payload == "" else payload

    def postprocess(self, value: Any) -> Any:
        """An empty field for None."""
        return "" if value is None else value


NEXT_SEED = f"seed => (Math.max(0, Math.trunc(seed)) + 1) % {MOST_SEED}"
"""Script: the seed after one, also after an empty field and other seeds that cannot be."""


def new_value(value: Any, held: Any) -> dict[str, Any]:
    """The value of an update (``gr.update(**new_value(...))``) of a control that holds another one.

    A value that is right already is not sent: the visitor may have chosen another one meanwhile.
    """
    return {} if value == held else {"value": value}


def choices(options: Mapping[str, str], language: str, chosen: str, value: str) -> list[Any]:
    """Choices of the moment: pairs of the title, in a language of the page, and its value.

    Args:
        options: Titles by their values; a `Wording` is translated.
        language: Of the page (:class:`app.parts.plain.SentenceInput` can read it).
        chosen: The option that counts.
        value: What the component holds, which becomes that option's value: so that it shows it
            without being written to, which would undo what the visitor does meanwhile.
    """
    return [
        (spoken(title, language), value if option == chosen else option)
        for option, title in options.items()
    ]


def _limits(part: Component) -> dict[str, Any]:
    """What a component takes; with anything else Gradio would answer no question of the lab."""
    if isinstance(part, OpenRadio | OpenDropdown | OpenCheckboxGroup):
        return {}
    if isinstance(part, gr.Radio | gr.CheckboxGroup | gr.Dropdown):
        free = getattr(part, "allow_custom_value", False)
        return {} if free else {"among": [value for _, value in part.choices]}
    if isinstance(part, gr.Slider | gr.Number):
        bounds = {"from": part.minimum, "to": part.maximum}
        return {name: bound for name, bound in bounds.items() if bound is not None}
    return {}
