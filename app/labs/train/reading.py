"""What a pretraining or a race reads: shipped texts, a pasted one, files, texts from elsewhere."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

import gradio as gr
from gradio.components import Component

from app.labs.train.form import Form, listed
from app.labs.train.parts import COPIES, Told, Upload, sent
from app.parts import fields
from app.parts.controls import OpenCheckboxGroup, OpenDropdown, answer, new_value
from app.parts.plain import Kept, Line, Table, table
from app.runs.data import sources as run_sources
from app.runs.data import texts as run_texts
from app.runs.forms import preview as run_preview
from app.runs.forms.words import size
from app.serving.session import Session
from core_models import InputError
from viz.svg import Wording

FILES = "Send a file: text (.txt) or a table (.csv, .tsv, .jsonl, .parquet)"
ELSEWHERE = (
    "A public name of the `datasets` library. Its beginning, up to the size of a file that may be "
    "sent, is fetched over the network and kept."
)
MOST_PASTED = 400_000
READS = "() => [{{ reads: {0} }}, {{ __type__: 'update', interactive: {1} }}]"
TEXTS = "data.texts"
OFFERED = [(title, pattern) for pattern, title in run_texts.SHIPPED.items()]
OWN = f"{run_texts.BESIDE}/"


class ReadingForm(Form):
    """A form for a run that reads texts."""

    offered: ClassVar = {TEXTS: OFFERED, "data.training_only": OFFERED}

    def texts(self) -> None:
        """Draw where texts come from, and how they were read."""
        self.copied = OpenCheckboxGroup(
            [],
            value=[],
            label="Texts of the run that these settings come from",
            elem_classes=["copied"],
        )
        with gr.Accordion("Texts of your own", open=False):
            Line(COPIES)
            self.upload = Upload(FILES, several=True)
            self.paste = gr.Textbox(
                label="Paste a text",
                placeholder="One sentence on each line, a blank line between documents.",
                lines=3,
                max_lines=8,
                max_length=MOST_PASTED,
            )
            self._elsewhere()
            with gr.Row(visible=False) as self.looking:
                self.looked = OpenDropdown([], label="Look at", filterable=False)
                self.column = OpenDropdown([], label="Column of the text", filterable=False)
            self.rows = Table(elem_id=f"train-{self.kind}-rows")
        self.columns = Kept({})
        self.reads = Table(elem_id=f"train-{self.kind}-reads")
        self.own |= {"copied": self.copied, "upload": self.upload, "columns": self.columns}
        self.tells.append(self.reads)

    def _elsewhere(self) -> None:
        names, folders = run_sources.allowed()
        with gr.Accordion("Read from elsewhere", open=False, visible=bool(names or folders)):
            with gr.Row(visible=names):
                self.dataset = gr.Textbox(
                    label="Name of a data set",
                    placeholder="owner/name",
                    info=ELSEWHERE,
                    max_length=200,
                    scale=3,
                )
                self.configuration = gr.Textbox(label="Configuration, if it has several")
                self.split = gr.Textbox("train", label="Split")
                self.by_name = gr.Button("Read the data set", size="sm", scale=0, min_width=160)
            with gr.Row(visible=bool(folders)):
                self.folder = gr.Textbox(
                    label="Folder on this machine",
                    placeholder=", ".join(map(str, folders)),
                    info="Its texts and tables are read in order of name.",
                    scale=3,
                )
                self.by_folder = gr.Button("Read the folder", size="sm", scale=0, min_width=160)

    def wire(self, session: Session, turns: run_preview.Turns, wish: Told, started: Told) -> None:
        """Texts are taken as soon as they are there; the form is checked with them then."""
        super().wire(session, turns, wish, started)
        self.pasting(self.paste, self.upload, "upload", self.take)
        named = {"dataset": self.dataset, "configuration": self.configuration, "split": self.split}
        for button, of in (
            (self.by_name, named),
            (self.by_folder, {"folder": self.folder}),
        ):
            # What is read is waited for as what is sent: a run would start without it.
            parts = [self.upload, button]
            button.click(None, None, parts, js=READS.format("true", "false"))
            read = answer([button.click], self.fetch, of, [self.upload], self.problem, once=True)
            read.then(None, None, parts, js=READS.format("false", "true"))
        look = {"looked": self.looked, "column": self.column, **self.own}
        answer(
            [self.upload.change, self.looked.input, self.column.input],
            self.look,
            look,
            [self.looking, self.looked, self.column, self.rows, self.columns],
            self.problem,
        )

    def changes(self) -> list[Any]:
        """The texts are settings, too."""
        texts = [self.copied.change, self.upload.change, self.columns.change]
        return [*super().changes(), *texts]

    # --- texts of a visitor's own -------------------------------------------------------------

    def take(self, question: Mapping[str, Any]) -> list[Any]:
        """A pasted text, among those that were sent."""
        text = question["paste"] if isinstance(question["paste"], str) else ""
        held = question["upload"] if isinstance(question["upload"], Mapping) else {}
        old = [each for each in held.get("sent") or () if each.get("pasted")]
        if not text.strip():
            return [{"add": None, "drop": "pasted"} if old else gr.skip()]
        found = self.inbox().save("pasted.txt", text.encode())
        if old and old[0].get("id") == found.id:
            return [gr.skip()]
        return [{"add": asdict(found) | {"pasted": True}}]

    def fetch(self, question: Mapping[str, Any]) -> list[Any]:
        """A text that lies elsewhere."""
        wanted = {name: str(value or "").strip() for name, value in question.items()}
        return [{"add": asdict(run_sources.fetch(self.inbox(), wanted))}]

    def look(self, question: Mapping[str, Any]) -> list[Any]:
        """One text as it was read, with the column that is chosen of a table."""
        there = {str(each.get("id")): each for each in _sent(question)}
        if not there:
            return [gr.update(visible=False), gr.update(choices=[], value=None), None, None, {}]
        columns = dict(question["columns"]) if isinstance(question["columns"], dict) else {}
        last = next(reversed(there))
        new = columns.get("last") != last
        of = last if new or question["looked"] not in there else question["looked"]
        text = self.service().inbox.view(of)
        choices = [
            (name, place)
            for place, (name, usable) in enumerate(zip(text.columns, text.usable, strict=True))
            if usable
        ]
        if columns.get("of") == of and question["column"] in [place for _, place in choices]:
            columns[of] = question["column"]
        place = columns.get(of, text.column)
        names = [(str(each.get("name"))[:80], each_id) for each_id, each in there.items()]
        return [
            gr.update(visible=True),
            gr.update(choices=names, **new_value(of, question["looked"])),
            gr.update(
                choices=choices, visible=bool(choices), **new_value(place, question["column"])
            ),
            _rows(text, place),
            {**columns, "of": of, "last": last},
        ]

    def sent(self, question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Texts that were sent, each with the column that is read."""
        columns = question["columns"] if isinstance(question["columns"], Mapping) else {}
        found = []
        for each in sent(question["upload"]):
            names = each.get("columns") or ()
            place = columns.get(each.get("id"), each.get("column"))
            known = isinstance(place, int) and place in range(len(names))
            column = str(names[place]) if known else None
            part = f".{place}" if known else ""
            found.append({"id": f"{each.get('id')}{part}", "name": each["name"], "column": column})
        return found

    def settings(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Of the texts of a run that was copied, those that are still chosen."""
        config = super().settings(question)
        data = config["data"] if isinstance(config.get("data"), dict) else {}
        named = listed(data.get("texts"))
        still = question["copied"] or []
        texts = [name for name in named if not str(name).startswith(OWN) or name in still]
        return {**config, "data": {**data, "texts": texts}}

    def fill(self, config: Mapping[str, Any], **more: Any) -> list[Any]:
        """With the texts of the run that is copied."""
        named = listed(fields.read(config, TEXTS))
        own = [name for name in named if str(name).startswith(OWN)]
        choices = [(name.removeprefix(OWN), name) for name in own]
        shown = gr.update(choices=choices, value=own)
        return [*super().fill(config, **more), shown]

    def filled(self) -> list[Component]:
        """With the texts of the run that is copied."""
        return [*super().filled(), self.copied]

    def emptied(self) -> list[Component]:
        """Texts went with the run."""
        return [*super().emptied(), self.copied, self.upload, self.paste]

    def after(self, config: dict[str, Any]) -> list[Any]:
        """Its own texts belong to the run that has started."""
        texts = [name for name in config["data"]["texts"] if not str(name).startswith(OWN)]
        config = {**config, "data": {**config["data"], "texts": texts}}
        gone = gr.update(choices=[], value=[])
        return [{"config": config, "source": None}, gone, {"clear": True}, ""]


def counted(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The texts of one's own, as a run would read them."""
    if found is None or not (found["reads"] or found["own"]):
        return None
    return table(
        Wording("Texts of your own, as the run reads them"),
        [Wording("Text"), Wording("Lines"), Wording("Documents"), Wording("Size")],
        [
            [
                str(each["name"]).removeprefix(OWN),
                each["lines"],
                each.get("documents"),
                [each["bytes"], size(each["bytes"])],
            ]
            for each in (*found["own"], *found["reads"])
        ],
    )


def _sent(question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    try:
        return sent(question["upload"])
    except InputError:  # one is under way: it is looked at when it is there
        return []


def _rows(text: run_texts.Text, place: int | None) -> dict[str, Any] | None:
    """Rows of a table with the chosen column before the others, or the first documents."""
    if place is None:
        rows = [[number + 1, " ".join(each)] for number, each in enumerate(text.sample)]
        heads = [Wording("Document"), Wording("Text")]
        return (
            table(Wording("The first documents, as they are read"), heads, rows) if rows else None
        )
    others = [other for other in range(len(text.columns)) if other != place]
    shown, of = len(text.rows), f"{text.of:,}"
    caption = (
        Wording("{0} of the first {1} rows, from all their parts.", shown, of)
        if text.more
        else Wording("The only row of the table.")
        if text.of == 1
        else Wording("{0} of {1} rows, from all parts of the table.", shown, of)
    )
    return table(
        caption,
        [
            Wording("Row"),
            Wording("{0}, which is read", text.columns[place]),
            *(text.columns[other] for other in others),
        ],
        [
            [number, row[place], *(row[other] for other in others)]
            for number, row in zip(text.numbers, text.rows, strict=True)
        ],
    )
