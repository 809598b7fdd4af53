"""What the three forms for a new run share: settings, a check, a try, the start.

Settings are one object, as in ``config.json``. Those with a control are what the control shows, all
others are kept by the page beside them (:class:`~app.labs.train.parts.Kept`); so a form sends each
time all that it stands for, and the server keeps nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gradio as gr
from gradio.components import Component

from app.labs.train.parts import Batch, Told, Upload, packed
from app.parts import fields
from app.parts.controls import answer
from app.parts.plain import Kept, Line
from app.runs import owner as run_owner
from app.runs import room
from app.runs.config import kind_of
from app.runs.data.texts import Inbox
from app.runs.forms import command
from app.runs.forms import form as run_form
from app.runs.forms import preview as run_preview
from app.runs.forms.words import duration, sentences
from app.runs.runs import OFF, Runs
from app.serving.session import Session
from core_models import InputError
from core_models.errors import not_json
from core_models.training.run_schema import Part
from viz.svg import Wording

Asked = tuple[dict[str, Any], list[str], str | None]
"""Settings, ids of what was sent, and the run that they were copied from."""
CHOICES = "found => Cloze.trainChoices(found)"
SAVE = """shown => import(`${window.ClozeRoot}cloze/app/parts/download.js`).then(
  ({ download }) => download(
    `${shown.file}.json`, `${JSON.stringify(shown.shell, null, 2)}\\n`, 'application/json'))"""
# What somebody writes there while an answer is under way stays, also in the moment between Gradio's
# look at the box and this one.
WRITE = """(shown, json, drawn) => {{
  const box = document.querySelector('#train-forms .kind-{0} .json textarea')?.value ?? json;
  return box === json && [shown?.written, drawn].includes(json)
    ? [shown.text, shown.text] : [{{ __type__: 'update' }}, {{ __type__: 'update' }}];
}}"""
PASTING = "text => (text?.trim() ? { reads: true } : { __type__: 'update' })"
PASTED = "() => ({ reads: false })"
FILL = "(found, ...now) => Cloze.trainFilled('{0}', found, now)"
COPY = """command => import(`${window.ClozeRoot}cloze/app/parts/download.js`).then(
  ({ copyText }) => { copyText(command, document.activeElement); })"""
OTHER_KIND = "These are settings of another kind of run. Choose that kind above and use them there."
JSON_ABOUT = "Every setting the trainer knows; those above are part of it."


class Form:
    """A form for one kind of run; made where it is laid out, then wired.

    Subclasses lay out what only they have (:meth:`lay_out`), and say what settings come to
    (:meth:`weigh`).
    """

    kind: str
    schema: type[Part]
    offered: ClassVar[Mapping[str, Sequence[tuple[str, Any]]]] = {}
    """Choices of settings that are lists."""
    left_out: frozenset[str] = frozenset()
    """Settings that this form draws itself, or not at all."""
    start: str
    otherwise: str
    """What the file with the settings is called while the run has no name."""
    shell: str
    """The command, with the name of the file in it."""

    def __init__(self) -> None:
        self.runs: Runs | None = None
        self.known = {
            path: field
            for path, field in fields.fields(self.schema, self.offered).items()
            if path not in self.left_out
        }
        self.own: dict[str, Component] = {}
        """Controls of this form alone that its settings depend on."""
        self.tells: list[Component] = []
        """What else a check answers."""
        first = self.first()
        self.kept = Kept({"config": first, "source": None})
        self.note = Line()
        self.controls: dict[str, Component] = {}
        self.lay_out(first)
        for path, part in self.controls.items():
            part.value = part.postprocess(fields.shown(self.known[path], first))
        self._end()

    def _end(self) -> None:
        """What every form ends with."""
        self.measured, self.batched, self.shown, self.drawn = Kept(), Kept(), Kept(), Kept()
        self.filling = Kept()
        self.said = Line(elem_classes=["said"])
        self.about = Line()
        self.time = Line()
        # Where a control counts in other units, the path says that the message does not.
        names = {fields.named(field): field.label for field in self.known.values()}
        names |= {n: part.label for n, part in self.own.items() if getattr(part, "label", None)}
        self.wrong = Line(elem_classes=["wrong"], names=names)
        self.problem = Line(problem=True, names=names)
        with gr.Row(elem_classes=["acts"]):
            self.begin = gr.Button(self.start, variant="primary", scale=0, min_width=180)
            self.batch = gr.Button("Show the first batch", scale=0, min_width=200)
            self.measure = gr.Button("How long will it take?", scale=0, min_width=200)
            self.beside()
        self.tried()
        self.first_batch = Batch()
        with gr.Accordion("All settings as JSON", open=False):
            Line(JSON_ABOUT)
            self.json = gr.Textbox(label="Settings", lines=14, max_lines=30, elem_classes=["json"])
            self.apply = gr.Button("Use these settings", size="sm", scale=0)
        with gr.Accordion("The same from the command line", open=False):
            self.before = Line()
            self.command = gr.Textbox(label="Command", max_lines=1, buttons=[])
            with gr.Row(elem_classes=["acts"]):
                self.copy = gr.Button("Copy", size="sm", scale=0, min_width=100)
                self.save = gr.Button(
                    "Save the settings as a file", size="sm", scale=0, min_width=240
                )

    # --- what a kind of run says --------------------------------------------------------------

    def first(self) -> dict[str, Any]:
        """The settings that it begins with."""
        raise NotImplementedError

    def lay_out(self, config: Mapping[str, Any]) -> None:
        """Draw what only this form has, and the settings."""
        raise NotImplementedError

    def beside(self) -> None:
        """Draw what only this form has beside its buttons."""

    def tried(self) -> None:
        """Draw what only this form has below them."""

    def settings(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The settings as the page shows them."""
        values = fields.values_of(question, self.known)
        return fields.merged(kept(question)["config"], self.known, values)

    def needed(self, question: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
        """Settings that must not be empty."""
        return [path for path, field in self.known.items() if field.required]

    def sent(self, question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Files that go with the settings: ``id``, ``name`` and of a table ``column``."""
        return []

    def weigh(self, session: Session, asked: Asked) -> dict[str, Any]:
        """What the settings come to; InputError when they cannot be used."""
        return run_form.weigh(self.service(), session, *asked)

    def tell(self, question: Mapping[str, Any], found: Mapping[str, Any] | None) -> list[Any]:
        """The lines ``said`` and ``about``, and then what is in ``tells``; None = refused."""
        raise NotImplementedError

    def time_of(self, measured: Mapping[str, Any]) -> Wording:
        """What a try has shown."""
        return Wording(
            "At most about {0} and {1} MB of memory on this machine as busy as it is now, at {2} "
            "tokens per second.",
            duration(measured["seconds"]),
            f"{measured['memory'] / 1e6:,.0f}",
            f"{measured['tokens_per_second']:,.0f}",
        )

    def fill(self, config: Mapping[str, Any], **more: Any) -> list[Any]:
        """New values of :meth:`filled` for other settings altogether."""
        shown = [fields.shown(self.known[path], config) for path in self.controls]
        kept = {"config": dict(config), "source": None, **more}
        return [kept, self.noted(kept), written(config), *shown]

    def noted(self, kept: Mapping[str, Any]) -> str:
        """Where the settings come from."""
        source = kept["source"]
        return Wording("These are the settings of {0}.", source) if source else ""

    def filled(self) -> list[Component]:
        """What other settings change."""
        return [self.kept, self.note, self.json, *self.controls.values()]

    def begin_with(self, model: str) -> list[Any]:
        """The same, for a run that begins with this model."""
        raise NotImplementedError

    def offer(self, offers: Kept) -> None:
        """Take the models of the moment, whenever they are others."""

    # --- wiring -------------------------------------------------------------------------------

    def wire(self, session: Session, turns: run_preview.Turns, wish: Told, started: Told) -> None:
        """Answer every change by a check, and each button."""
        self.runs = session.library if isinstance(session.library, Runs) else None
        self.session, self.turns = session, turns
        inputs = {"kept": self.kept, **self.controls, **self.own}
        asked = {
            **inputs,
            **{name: getattr(self, name) for name in ("measured", "batched", "json", "shown")},
        }
        told = [self.said, self.about, self.wrong, self.time, self.first_batch]
        told += [self.before, self.command, self.shown, *self.tells]
        # What a try found may be of settings that are others by now: a check drops it then.
        changes = [self.kept.change, self.measured.change, self.batched.change, *self.changes()]
        answer(changes, self.check, asked, told, self.problem, first=True)
        for button, act, into in (
            (self.measure, self.estimate, [self.measured]),
            (self.batch, self.preview, [self.batched, self.first_batch]),
        ):
            answer([button.click], act, inputs, into, self.problem, patient=True)
        begin = {**inputs, "wish": wish}
        answer(
            [self.begin.click],
            self.create,
            begin,
            [started, *self.emptied()],
            self.problem,
            once=True,
            patient=True,
        )
        self.fills([self.apply.click], self.use, inputs)
        into = self.filled()
        taking = [self.filling, *into]
        self.taken = self.filling.change(None, taking, into, js=FILL.format(self.kind))  # type: ignore[attr-defined]
        boxes = [self.json, self.drawn]
        self.shown.change(None, [self.shown, *boxes], boxes, js=WRITE.format(self.kind))
        self.save.click(None, self.shown, None, js=SAVE)
        self.copy.click(None, self.command, None, js=COPY)

    def fills(
        self, triggers: Sequence[Any], act: Callable[..., Any], inputs: Mapping[str, Any]
    ) -> None:
        """Answer by other settings; what somebody changes before they are there stays."""
        asked = {**inputs, "json": self.json}
        places = {id(part): place for place, part in enumerate(self.filled())}
        may = {
            name: places[id(part)]
            for name, part in asked.items()
            if id(part) in places and part is not self.kept
        }

        def on_act(question: Mapping[str, Any]) -> list[Any]:
            held = {may[name]: question[name] for name in may}
            return [packed(self.filled(), act(question), held)]

        answer(triggers, on_act, asked, [self.filling], self.problem)

    def pasting(
        self, paste: gr.Textbox, upload: Upload, name: str, take: Callable[..., Any]
    ) -> None:
        """Take a pasted text; until it is there it is waited for as a file: a run starts with it.

        Args:
            paste: Where it is pasted.
            upload: What it goes to, as ``take`` says.
            name: Of ``upload`` for ``take``; the text is ``paste``.
            take: Answers by the new value of ``upload``.
        """
        paste.blur(None, paste, upload, js=PASTING)
        asked = {"paste": paste, name: upload}
        taken = answer([paste.blur], take, asked, [upload], self.problem)
        taken.then(None, None, upload, js=PASTED)

    def changes(self) -> list[Any]:
        """Events of a visitor that change the settings."""
        # Pasting is no `input` of a text box.
        return [
            part.change if isinstance(part, gr.Textbox) else part.input
            for part in self.controls.values()
        ]

    def emptied(self) -> list[Component]:
        """What is put back once a run has started, beside the settings that are kept."""
        return [self.kept]

    def asked(self, question: Mapping[str, Any]) -> Asked:
        """All that the page sends of a form; a run that was deleted since is forgotten.

        Raises:
            InputError: a file is still under way, a text of a deleted run is named, a control is
                empty or holds too large a number, or settings of another kind were written.
        """
        config = self.settings(question)
        if kind_of(config) != self.kind:
            raise InputError(OTHER_KIND)
        fields.check(config, self.known, self.needed(question, config))
        ids = [str(each.get("id"))[:40] for each in self.sent(question)]
        source = run_form.still_there(self.service(), config, kept(question)["source"])
        return config, ids, source

    def service(self) -> Runs:
        """The runs of this server."""
        if self.runs is None:
            raise InputError(OFF)
        return self.runs

    def inbox(self) -> Inbox:
        """Where texts of visitors go; InputError where no runs are started."""
        if not self.service().enabled:
            raise InputError(OFF)
        return self.service().inbox

    def check(self, question: Mapping[str, Any]) -> list[Any]:
        """What the settings come to, and what a try of just these has shown."""
        config = self.settings(question)
        wrong, found, of = "", None, None
        try:
            asked = self.asked(question)
            of = key(asked)
            found = self.weigh(self.session, asked)
        except InputError as error:
            wrong = str(error)
        said, about, *more = self.tell(question, found)
        measured = matching(question["measured"], of)
        batch = gr.skip() if matching(question["batched"], of) else None
        time = sentences(
            [self.time_of(measured) if measured else "", run_form.slow(self.runs, config)]
        )
        text, before = written(config), question["shown"]
        last = before.get("text") if isinstance(before, Mapping) else None
        # What somebody writes there stays until it is used, or the settings are others altogether.
        known = [parsed(each) for each in ("", text, last)]
        edited = parsed(question["json"]) not in (*known, kept(question)["config"])
        try:
            files = self.sent(question)
        except InputError:
            files = []
        called = command.file_name(config.get("name"), self.otherwise)
        place = self.runs.place if self.runs else str
        shown = {"text": text, "file": called, "shell": command.for_shell(config, files, place)}
        shown["written"] = None if edited else question["json"]
        return [
            *(said, about, wrong),
            time,
            batch,
            command.before(config, files),
            self.shell.format(called),
            shown,
            *more,
        ]

    async def estimate(self, question: Mapping[str, Any]) -> list[Any]:
        """How long it would take, from a try."""
        asked = self.asked(question)
        found = await self._try(question, run_preview.estimate, asked)
        return [{"of": key(asked), **found}]

    async def preview(self, question: Mapping[str, Any]) -> list[Any]:
        """The first batch."""
        asked = self.asked(question)
        found = await self._try(question, run_preview.first_batch, asked)
        return [{"of": key(asked)}, found]

    async def _try(
        self, question: Mapping[str, Any], call: Callable[..., Any], asked: Asked
    ) -> Any:
        page = getattr(question["request"], "request", None)
        return await self.turns.take(page, call, self.service(), *asked)

    def create(self, question: Mapping[str, Any]) -> list[Any]:
        """Start a run; texts that went with it are no longer the form's."""
        runs = self.service()
        config, ids, source = self.asked(question)
        wish = question["wish"] if isinstance(question["wish"], Mapping) else {}
        owner = run_owner.of(question["request"].username, wish.get("owner"))
        run = runs.create(config, texts=ids, source=source, owner=owner)
        try:
            runs.start(run)
        except InputError as error:
            if str(error) not in (room.FULL, room.WAITS):
                raise
            runs.discard(run)  # the form is as it was, and so is the list
            raise InputError(room.FULL) from None
        return [{"id": run}, *self.after(config)]

    def after(self, config: dict[str, Any]) -> list[Any]:
        """New values of :meth:`emptied`."""
        return [{"config": config, "source": None}]

    def use(self, question: Mapping[str, Any]) -> list[Any]:
        """Take the settings that a visitor has written."""
        try:
            exact = json.loads(question["json"] or "")
            config = json.loads(question["json"], parse_int=_number)
        except (ValueError, RecursionError) as error:
            raise InputError(f"This is not JSON: {not_json(error)}") from None
        if not isinstance(config, dict):
            raise InputError("The settings of a run must be an object.")
        fields.check(exact, self.known, ())
        # Half a character cannot be sent to the page.
        config = json.loads(written(config).encode("utf-8", "replace"))
        return self.fill(config, source=kept(question)["source"])


def translated(part: Component) -> Kept:
    """Choices of a component that Python gives while the page is open, with their words.

    Its value is an object with ``choices``: what each is called, and it.
    """
    found = Kept()
    found.change(None, found, part, js=CHOICES)
    return found


def kept(question: Mapping[str, Any]) -> dict[str, Any]:
    """What the page keeps of a form, as far as it is what it should be."""
    found = question["kept"] if isinstance(question["kept"], Mapping) else {}
    config, source = found.get("config"), found.get("source")
    if source is not None and not isinstance(source, str):
        raise InputError("source must be the id of a run.")
    return {**found, "config": config if isinstance(config, dict) else {}, "source": source}


def written(config: Mapping[str, Any]) -> str:
    """All settings, for people to read."""
    return json.dumps(config, indent=2, ensure_ascii=False)


def parsed(text: Any) -> Any:
    """Settings as somebody has written them; what is no JSON as it stands, and nothing as None.

    As values, because a page writes 1.0 as 1.
    """
    try:
        return json.loads(text) if text else None
    except (TypeError, ValueError, RecursionError):
        return text


def listed(value: Any) -> list[Any]:
    """A list of settings; of what is none, nothing: a check says what is wrong with it."""
    return value if isinstance(value, list) else []


def _number(digits: str) -> float:
    """A whole number, or near it where the page would hold it only so."""
    number = int(digits)
    return number if abs(number) <= fields.EXACT else float(digits)


def key(asked: Asked) -> str:
    """By what a try knows the settings that it was made of.

    What the run is called is no part of it: the page proposes a name, which may come after the try.
    """
    config, *more = asked
    named = {path: value for path, value in config.items() if path != "name"}
    return json.dumps([named, *more], sort_keys=True)


def matching(found: Any, of: str | None) -> Mapping[str, Any] | None:
    """What a try has shown, if it was made of just these settings."""
    right = isinstance(found, Mapping) and of is not None and found.get("of") == of
    return found if right else None
