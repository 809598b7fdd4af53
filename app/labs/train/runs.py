"""The runs of this server: the list of them, and one of them with all that it shows.

Components are Gradio's; what they show comes from :mod:`app.runs.reports.shown` by their names
here. watch.js asks for it and hands it over, outside Gradio's events, so that fifty pages that
watch a run cost little and a page goes on by itself when the server is back.
"""

import json
from typing import Any

import gradio as gr
from gradio.components import Component

from app.labs.train.form import COPY
from app.labs.train.parts import Passages, Scrub, Told
from app.parts.controls import OpenDropdown, OpenRadio
from app.parts.figure import Figure
from app.parts.plain import Heading, Kept, Line, Table
from app.parts.views import view

RACE = (
    "Losses of different objectives cannot be compared with each other; the probes can. Dots are "
    "held-out text."
)
Shown = Component | gr.blocks.BlockContext


class Panel:
    """The list and the run; made where they are laid out.

    Attributes:
        named: Every component by the name that :mod:`app.runs.reports.shown` has for it.
        watch: Asks what to show; its value tells that there is something new.
    """

    def __init__(self) -> None:
        self.named: dict[str, Shown] = {}
        with gr.Column(elem_id="train-list", min_width=0):
            self.watch = view("train", events=["open"], module="labs/train/view")
            self.new = self._add("new", gr.Button("New run", variant="primary"))
            self.problem = self._add("problem", Line(problem=True))
            self.list = self._add(
                "list", OpenRadio([], label="Training runs", elem_id="train-runs")
            )
            self._add("none", Line())

    def _add(self, name: str, part: Shown) -> Shown:
        self.named[name] = part
        return part

    def lay_out(self) -> None:
        """The run that is shown."""
        add = self._add
        with gr.Column(elem_id="train-run", min_width=0):
            self._head()
            add("early", Line())
            with add("curves", gr.Column(visible=False)):
                with gr.Row(elem_classes=["picks"]):
                    self.what = add("what", OpenDropdown([], label="Show", filterable=False))
                    self.by = add("by", OpenDropdown([], label="By", filterable=False))
                    self.compare = add(
                        "compare", OpenDropdown([], label="Compare with", multiselect=True)
                    )
                add("chart", Figure(elem_id="cloze-run", main=True))
                add("said", Line())
                add("csv", gr.Button("All reports as CSV", size="sm", scale=0))
            add("differs", Table(elem_id="cloze-differences"))
            with add("race", gr.Column(visible=False)):
                Line(RACE)
                add("table", Table(elem_id="cloze-race"))
                add("failures", Line(elem_classes=["wrong"]))
            self._result()
            self._try()
            with add("doctor", gr.Accordion("How it trains", open=False)):
                add("findings", Table())
                add("small", Figure(elem_id="cloze-run-figures"))
            with add("snapshots", gr.Accordion("The same sentence at every snapshot", open=False)):
                add("scrub", Scrub())
            with add("held_out", gr.Accordion("Held-out examples", open=False)):
                add("examples", Passages())
            self._settings()
            self.opens = add("opens", Kept())
            self.tick = Told("tick")

    def _head(self) -> None:
        add = self._add
        add("title", Heading())
        add("facts", Line(elem_classes=["facts"]))
        add("silent", Line(elem_classes=["wrong"]))
        add("reason", Line(elem_classes=["wrong"]))
        self.whose = add(
            "whose", OpenDropdown([], label="Model of the race", filterable=False, visible=False)
        )
        with gr.Row(elem_classes=["acts"]):
            self.stop = add("stop", self._button("Stop"))
            self.resume = add("resume", self._button("Continue", variant="primary"))
            self.open = add("open", self._button("Fill gaps with it"))
            self.attend = add("attend", self._button("See its attention"))
            self.tune = add("tune", self._button("Fine-tune it"))
            self.again = add("again", self._button("New run from this one"))
            add("download", self._button("Download the model"))
            self.delete = add("delete", self._button("Delete", variant="stop"))
        with add("sure", gr.Row(visible=False, elem_classes=["acts"])):
            add("asked", Line(elem_classes=["wrong"]))
            self.yes = self._button("Delete it for good", variant="stop", visible=True)
            self.no = self._button("Keep it", visible=True)

    @staticmethod
    def _button(text: str, *, visible: bool = False, variant: str = "secondary") -> gr.Button:
        return gr.Button(text, size="sm", scale=0, min_width=90, visible=visible, variant=variant)  # type: ignore[arg-type]

    def _result(self) -> None:
        add = self._add
        with add("result", gr.Column(visible=False)):
            Heading("What it reached")
            add("summary", Line())
            add("reached", Figure(elem_id="cloze-reached"))
            with gr.Accordion("All figures", open=False):
                add("metrics", Table(elem_id="cloze-metrics"))
                add("labels", Table(elem_id="cloze-labels"))
            add("confusion", Figure(elem_id="cloze-confusion"))
            add("no_confusion", Line())
            add("sure_of", Line())
            add("calibration", Figure(elem_id="cloze-calibration"))
            add("worst", Table(elem_id="cloze-mistakes"))
            add("no_worst", Line())
            with add("surest", gr.Accordion("What it is surest of", open=False)):
                add("best", Table(elem_id="cloze-surest"))

    def _try(self) -> None:
        add = self._add
        with add("try", gr.Column(visible=False)):
            Heading("Try it")
            self.text = add("text", gr.Textbox(label="A sentence", lines=2, max_length=20_000))
            self.pair = add("pair", gr.Textbox(label="A second sentence", max_length=2_000))
            self.ask = gr.Button("Ask the model", variant="primary", scale=0, min_width=160)
            add("refused", Line(elem_classes=["wrong"]))
            add("found", Line())
            add("marked", gr.HighlightedText(label="In the text", visible=False, buttons=[]))
            add("shares", gr.Label(show_label=False, visible=False, buttons=[]))
            add("where", Figure(elem_id="cloze-answer"))

    def _settings(self) -> None:
        add = self._add
        with gr.Accordion("Log, settings and command", open=False):
            read: dict[str, Any] = {"interactive": False, "buttons": [], "elem_classes": ["json"]}
            add("log", gr.Textbox(label="Log", lines=6, max_lines=16, **read))
            self.config = gr.Textbox(label="Settings (config.json)", lines=6, max_lines=16, **read)
            self.copy_config = gr.Button("Copy", size="sm", scale=0, min_width=100)
            self.command = gr.Textbox(label="The command that starts or continues it", **read)
            self.copy_command = gr.Button("Copy", size="sm", scale=0, min_width=100)
            add("config", self.config)
            add("command", self.command)

    def wire(self) -> None:
        """Everything a visitor does is told to watch.js, which asks the server."""

        def does(event, inputs, act: str) -> None:
            values = ", ".join(f"_{n}" for n in range(len(inputs)))
            event(None, inputs or None, None, js=f"({values}) => {{ Cloze.runs.{act}; }}")

        self.copy_config.click(None, self.config, None, js=COPY)
        self.copy_command.click(None, self.command, None, js=COPY)
        names = list(self.named)
        take = f"() => Cloze.takeShown({json.dumps(names)})"
        self.tick.change(None, None, list(self.named.values()), js=take)
        does(self.new.click, [], "fresh()")
        does(self.list.input, [self.list], "choose(_0)")
        does(self.what.input, [self.what], "ask({ what: _0 })")
        does(self.by.input, [self.by], "ask({ by: _0 })")
        does(self.compare.input, [self.compare], "ask({ with: _0 })")
        does(self.whose.input, [self.whose], "ask({ entrant: _0 })")
        does(self.stop.click, [], "act('stop')")
        does(self.resume.click, [], "act('start')")
        does(self.delete.click, [], "doubt()")
        does(self.yes.click, [], "sure()")
        does(self.no.click, [], "keep()")
        does(self.again.click, [], "again()")
        does(self.tune.click, [self.opens], "tune(_0)")
        does(self.open.click, [self.opens], "open(_0)")
        does(self.attend.click, [self.opens], "open(_0, 'attention')")
        for event in (self.ask.click, self.text.submit, self.pair.submit):
            does(event, [self.text, self.pair], "tryOut(_0, _1)")
