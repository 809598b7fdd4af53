"""Fine-tuning and races from the page without a browser: sets, limits, owners, what is refused."""

import io
import json

import pytest

from app.runs import models as run_models
from app.runs import process as run_process
from app.runs.forms import preview as run_preview
from app.runs.forms import races as run_races
from app.runs.forms import tasks as run_tasks
from app.runs.reports.reports import Reports
from core_models import InputError, load
from core_models.model import SHIPPED
from core_models.tasks import sets
from core_models.tasks.heads import ready
from core_models.training import race_schema, task_look, task_settings
from core_models.training.folder import RunFolder
from core_models.training.race_folder import RaceFolder

ROWS = "body,mood,note\n" + "".join(
    f"The {noun} {word}.,{label},{n}\n"
    for n, noun in enumerate(["film", "meal", "room", "song", "walk", "book"])
    for word, label in (("pleased us", "good"), ("bored us", "bad"))
)
TASK = {"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}, "epochs": 2}
RACE = {
    "name": "Two",
    "entrants": [
        {"name": "masked", "size": "bert-mini", "objectives": {"masked_token": 1.0}},
        {"name": "causal", "size": "bert-mini", "objectives": {"causal": 1.0}},
    ],
    "budget": {"steps": 10},
    "data": {"texts": ["primer/english-*.txt"]},
}
OWN, OTHER = "a" * 32, "b" * 32


# --- labelled sets --------------------------------------------------------------------------


def test_a_shipped_set_is_described_by_its_labels_and_first_rows(make_runs):
    found = run_tasks.look(make_runs().inbox, {"set": "sentiment"})
    assert found["kind"] == "classify"
    assert sum(found["train"]["labels"].values()) == found["train"]["rows"]
    assert found["rows"][0]["said"] in found["labels"]


def test_a_sent_table_is_guessed_and_may_be_mapped_otherwise(make_runs):
    inbox = make_runs().inbox
    sent = inbox.save_labelled("moods.csv", ROWS.encode())
    found = run_tasks.look(inbox, {"set": sent["id"]})
    assert found["problem"] is None
    assert found["guess"] == {"text": "body", "label": "mood"}
    assert found["train"]["rows"] + found["dev"]["rows"] == 12
    assert any("Few" in warning for warning in found["warnings"])
    # A column that holds no text is told with its row, and the columns are still shown.
    columns = {"text": "body", "score": "mood"}
    wrong = run_tasks.look(inbox, {"set": sent["id"], "kind": "regress", "columns": columns})
    assert "row 1" in wrong["problem"]
    assert wrong["columns"] == ["body", "mood", "note"]
    assert wrong["cells"][0]["mood"] == "good"
    assert str(inbox.folder) not in wrong["problem"]
    assert sent["id"] not in wrong["problem"]


def test_a_sent_table_is_read_once_for_all_changes_of_a_form(make_runs, session, monkeypatch):
    runs, read, built = make_runs(), [], []
    parse, build = run_tasks.parse, run_tasks.sets.build
    monkeypatch.setattr(run_tasks, "parse", lambda *a: read.append(a) or parse(*a))
    monkeypatch.setattr(run_tasks.sets, "build", lambda *a, **k: built.append(k) or build(*a, **k))
    one = runs.inbox.save_labelled("moods.csv", ROWS.encode())["id"]
    other = runs.inbox.save_labelled("moods.csv", ROWS.upper().encode())["id"]
    first = run_tasks.look(runs.inbox, {"set": one})
    assert run_tasks.look(runs.inbox, {"set": one}) == first
    assert (len(read), len(built)) == (1, 1)
    named = {"kind": first["kind"], "columns": first["guess"]}
    config = {"task": named, "model": {"checkpoint": "bert-mini"}}
    assert sum(run_tasks.check(runs, session, config, [one], None)["rows"]) == ROWS.count("\n") - 1
    assert (len(read), len(built)) == (1, 1), "what the form names is what was guessed"
    run_tasks.look(runs.inbox, {"set": other})
    run_tasks.look(runs.inbox, {"set": one, "dev": other})
    assert (len(read), len(built)) == (2, 3)
    turned = {"text": first["guess"]["label"], "label": first["guess"]["text"]}
    assert run_tasks.look(runs.inbox, {"set": one, "columns": turned}) != first


@pytest.mark.parametrize(
    ("name", "content", "ending"),
    [
        ("pasted", '{"text": "a", "label": "x"}\n', ".jsonl"),
        ("pasted", '[{"text": "a", "label": "x"}]', ".jsonl"),
        ("pasted", "text\tlabel\na\tx\n", ".tsv"),
        ("pasted", "text,label\na,x\n", ".csv"),
        ("../rows.TSV", "text\tlabel\na\tx\n", ".tsv"),
    ],
)
def test_what_is_pasted_is_told_apart_by_its_first_line(make_runs, name, content, ending):
    assert make_runs().inbox.save_labelled(name, content.encode())["name"].endswith(ending)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("text,label\na,x\nb,x\n", "at least two labels"),
        ("one\na\nb\n", "no column"),
        ("text,label\na,x,3\n", "row 1"),
        ("text,text\na,x\n", "twice"),
        ("context,question,answers\nA b c.,What?,zebra\nB c d.,Who?,B\n", "does not stand"),
    ],
)
def test_a_table_that_cannot_be_learned_from_says_why(make_runs, content, words):
    inbox = make_runs().inbox
    sent = inbox.save_labelled("rows.csv", content.encode())
    try:
        problem = run_tasks.look(inbox, {"set": sent["id"]})["problem"]
    except InputError as error:  # no table at all
        problem = str(error)
    assert words in problem


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "nothing", "", None, 3, "a" * 16])
def test_a_page_names_shipped_and_sent_sets_only(make_runs, name):
    runs = make_runs()
    with pytest.raises(InputError):
        run_tasks.look(runs.inbox, {"set": name})
    with pytest.raises(InputError):
        runs.create(TASK | {"task": {"set": name}})
    assert runs.ids() == []


def test_a_sent_set_lies_in_the_run_and_goes_with_a_copy(make_runs):
    runs = make_runs()
    sent = runs.inbox.save_labelled("moods.csv", ROWS.encode())
    columns = {"text": "body", "label": "mood"}
    config = TASK | {"task": {"kind": "classify", "columns": columns}}
    run = runs.create(config, texts=[sent["id"]])
    assert runs.config(run)["task"]["set"] == "texts/moods.csv"
    assert (runs.root / run / "texts/moods.csv").read_text() == ROWS
    again = runs.create(runs.as_form(run), source=run)
    assert (runs.root / again / "texts/moods.csv").read_text() == ROWS
    other = runs.create(runs.as_form(run) | {"task": {"set": "sentiment"}}, source=run)
    assert not (runs.root / other / "texts").exists(), "what it does not name stays where it is"
    assert Reports(runs).summary(run)["kind"] == "task"


def test_a_parquet_table_is_a_labelled_set_like_any_other(make_runs, session):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [line.split(",") for line in ROWS.strip().split("\n")]
    columns = {name: [row[n] for row in rows[1:]] for n, name in enumerate(rows[0])}
    columns["mood"] = [int(label == "good") for label in columns["mood"]]
    file = io.BytesIO()
    parquet.write_table(arrow.table(columns), file)
    runs = make_runs()
    sent = runs.inbox.save_labelled("moods.parquet", file.getvalue())
    assert (sent["name"], sent["bytes"]) == ("moods.parquet", len(file.getvalue()))
    task = {"kind": "classify", "columns": {"text": "body", "label": "mood"}}
    found = run_tasks.look(runs.inbox, {"set": sent["id"]} | task)
    assert (found["problem"], found["labels"]) == (None, ["0", "1"])
    run = runs.create(TASK | {"task": task}, texts=[sent["id"]])
    assert runs.config(run)["task"]["set"] == "texts/moods.jsonl"
    checked = run_tasks.check(runs, session, runs.config(run), [], run)
    assert sum(checked["rows"]) == 12
    wrong = run_tasks.look(runs.inbox, {"set": sent["id"], "columns": {"text": "title"}})
    assert "moods.parquet" in wrong["problem"]
    for content, words in ((b"PAR1 and no more", "no parquet file"), (b"plain", "no Parquet")):
        with pytest.raises(InputError, match=words) as refused:
            runs.inbox.save_labelled("x.parquet", content)
        assert str(runs.root) not in str(refused.value)
    parquet.write_table(arrow.table({"text": [b"a", b"b"]}), file := io.BytesIO())
    with pytest.raises(InputError, match="holds bytes"):
        runs.inbox.save_labelled("x.parquet", file.getvalue())


@pytest.mark.parametrize("content", ["text,label\n", "\n\n", "a,b\n1\n", '{"a"'])
def test_a_refused_table_is_named_as_the_visitor_names_it(make_runs, content):
    inbox = make_runs().inbox
    try:
        sent = inbox.save_labelled("mine.csv", content.encode())
        told = run_tasks.look(inbox, {"set": sent["id"]})["problem"]
    except InputError as error:
        told, sent = str(error), {"id": "?"}
    assert "mine.csv" in told or "empty" in told
    assert sent["id"] not in told


def test_a_set_without_the_named_column_makes_no_run(make_runs):
    runs = make_runs()
    sent = runs.inbox.save_labelled("moods.csv", ROWS.encode())
    config = TASK | {"task": {"columns": {"text": "title"}}}
    with pytest.raises(InputError, match="title"):
        runs.create(config, texts=[sent["id"]])
    assert runs.ids() == []


@pytest.mark.parametrize("name", ["deberta-v2-mini", "xlnet-mini"])
@pytest.mark.parametrize("part", ["sentiment", "ner", "qa", "similarity"])
def test_parameters_are_those_that_are_trained(name, part):
    """A mask decoder's positions stay behind, and so do the heads of pretraining."""
    model, task = load(SHIPPED / name), sets.load(part)
    asked = {"set": part, "every_step": part == "ner"}
    options = task_settings.parse({"model": {"checkpoint": name}, "task": asked})
    trained = ready(model, task, task_settings.tuning(options))
    counted = task_look.parameters(options, task, model)
    assert counted == sum(p.numel() for p in trained.parameters())


def test_a_form_refuses_what_the_run_would_refuse_and_counts_its_windows(make_runs, session):
    runs = make_runs()
    long = TASK | {"task": {"set": "qa"}, "max_length": 64, "epochs": 1, "batch_size": 1}
    parts = run_tasks.check(runs, session, long, [], None)
    assert parts["steps"] > parts["rows"][0]
    run = runs.create(long)
    assert json.loads((runs.root / run / "page.json").read_text())["steps"] == parts["steps"]


def test_rows_to_measure_on_are_looked_at_as_those_to_learn_from(make_runs, session):
    """What the model cannot read of them was told by the run alone, after its first epoch."""
    runs = make_runs()

    def sent(name, question):
        answered = {"question": question, "answers": [{"text": "Oslo", "start": 13}]}
        lines = (json.dumps(answered | {"context": f"It rained in Oslo {n}."}) for n in range(3))
        return runs.inbox.save_labelled(name, "\n".join(lines).encode())["id"]

    config = TASK | {"task": {"kind": "answer"}, "max_length": 32}
    good, other, long = (sent(f"{n}.jsonl", "Where?" + " why" * n) for n in (1, 2, 40))
    assert run_tasks.check(runs, session, config, [good, other], None)["rows"] == [3, 3]
    assert run_preview.first_batch(runs, config, [good, other], None)["rows"]
    for look in (
        lambda: run_tasks.check(runs, session, config, [good, long], None),
        lambda: run_preview.first_batch(runs, config, [good, long], None),
        lambda: runs.create(config, texts=[good, long]),
    ):
        with pytest.raises(InputError, match="Row 1 to measure on: The question leaves no room"):
            look()


def test_a_fine_tuning_may_leave_its_arithmetic_open(make_runs, session):
    runs, open_ = make_runs(), TASK | {"precision": "auto"}
    known = run_tasks.check(runs, session, TASK, [], None)
    assert run_tasks.check(runs, session, open_, [], None) == known
    assert runs.create(open_) in runs.ids()
    assert run_preview.first_batch(runs, open_, [], None)["rows"]


def test_what_a_form_comes_to_counts_steps_and_parameters(make_runs, session):
    found = run_tasks.check(make_runs(), session, TASK, [], None)
    rows = found["rows"][0]
    assert found["steps"] == 2 * (rows // 16)  # what fills no batch is left out each epoch
    tuned = session.model("bert-mini").with_head("classify", labels=("negative", "positive"))
    assert found["parameters"] == sum(p.numel() for p in tuned.parameters())
    with pytest.raises(InputError, match="frozen_layers"):
        run_tasks.check(make_runs(), session, TASK | {"frozen_layers": 9}, [], None)


# --- races ----------------------------------------------------------------------------------


def test_every_entrant_of_the_form_can_take_part(make_runs):
    offer = run_races.describe()
    entrants = [each["config"] for each in offer["entrants"]]
    runs = make_runs()
    config = offer["config"] | {"entrants": entrants}
    found = run_races.check(runs, config, [], None)
    assert (found["entrants"], found["steps"], found["flops"]) == (len(entrants), 400, None)
    rows = {row["name"]: row for row in found["rows"]}
    assert set(rows) == {each["name"] for each in entrants}
    assert all(row["steps"] == 400 and row["parameters"] > 400_000 for row in rows.values())
    assert [name for name, row in rows.items() if row["generator"]] == ["replaced"]
    # The same operations for each: who needs more for a step makes fewer.
    found = run_races.check(runs, config | {"budget": {"flops": 2e12}}, [], None)
    again = {row["name"]: row for row in found["rows"]}
    assert all(row["flops"] == pytest.approx(2e12, rel=0.01) for row in again.values())
    dear = max(rows, key=lambda name: rows[name]["flops"])
    assert again[dear]["steps"] == min(row["steps"] for row in again.values())


def test_a_race_over_one_document_is_refused_before_it_starts(make_runs):
    """A text without blank lines was taken, and the race failed."""
    runs = make_runs()
    text = runs.inbox.save("one.txt", b"A cat.\nA dog.\nA bird.\nA fish.\nA cow.\n")
    config = RACE | {"data": {"texts": [], "max_length": 16}}
    with pytest.raises(InputError, match=r"too few \(1\)"):
        run_races.check(runs, config, [text.id], None)
    text = runs.inbox.save("five.txt", b"A cat.\n\nA dog.\n\nA bird.\n\nA fish.\n\nA cow.\n")
    assert run_races.check(runs, config, [text.id], None)["reads"][0]["documents"] == 5


def test_a_race_is_tried_before_it_starts(make_runs):
    runs = make_runs()
    small = {"overrides": {"layers": 1, "width": 32, "heads": 2}, "tokenizer": {"vocabulary": 300}}
    config = RACE | small | {"batch_size": 2}
    config["data"] = RACE["data"] | {"max_length": 16}
    found = run_preview.estimate(runs, config, [], None)
    assert [row["name"] for row in found["entrants"]] == ["masked", "causal"]
    assert found["seconds"] == pytest.approx(sum(row["seconds"] for row in found["entrants"]))
    config["entrants"] = config["entrants"][::-1]
    found = run_preview.first_batch(runs, config, [], None)
    assert found["entrant"] == "causal"
    assert not any(any(row["case"]) for row in found["rows"])  # it hides nothing


def test_a_race_that_cannot_be_started_says_why(make_runs, monkeypatch):
    runs = make_runs()
    run = runs.create(RACE)

    def refused(*_):
        raise InputError("There is no place for its output.")

    monkeypatch.setattr(run_process, "launch", refused)
    with pytest.raises(InputError, match="no place for its output"):
        runs.start(run)
    assert runs.state(run) == "failed"
    assert "no place for its output" in Reports(runs).summary(run)["reason"]


def test_a_race_is_one_run_of_the_list_with_models_of_its_entrants(make_runs, monkeypatch):
    runs = make_runs()
    run = runs.create(RACE)
    folder = runs.folder(run)
    assert isinstance(folder, RaceFolder)
    assert runs.state(run) == "new"
    assert "core_models.training.race" in run_process.command(folder.path)
    race_schema.parse(folder.config())
    rows = [
        {"name": "masked", "state": "finished", "family": "bert", "step": 10, "steps": 10},
        {"name": "causal", "state": "waiting", "family": "bert", "step": 0, "steps": 10},
    ]
    folder.write_status({"state": "stopped", "table": rows})
    folder.run("masked").model_path.mkdir(parents=True)
    for step in range(1, 1001):
        folder.run("masked").append_metrics({"step": step, "loss": 1.0})
    summary = Reports(runs).summary(run)
    assert (summary["kind"], summary["step"], summary["steps"]) == ("race", 10, 20)
    assert runs.models() == [(f"run/{run}/masked", f"masked (of {run})")]
    assert runs.model_path(f"run/{run}/masked") == folder.run("masked").model_path
    for wrong in ("", "/causal", "/../masked", "/nobody"):
        with pytest.raises(InputError):
            runs.model_path(f"run/{run}{wrong}")
    reports = Reports(runs)
    found = run_races.live(runs, run, reports.records_of)
    with monkeypatch.context() as patch:  # the next look reads what is new, and nothing twice
        patch.setattr(RunFolder, "metrics", lambda _: pytest.fail("all was read anew"))
        assert run_races.live(runs, run, reports.records_of) == found
    assert found["models"] == [f"run/{run}/masked"]
    steps = [record["step"] for record in found["series"]["masked"]]
    assert len(steps) <= run_races.MOST_POINTS + 50
    assert (steps[0], steps[-1]) == (1, 1000)
    noted = {"step": 10, "kind": "masked_token", "examples": 3, "worst": [], "best": []}
    (folder.run("masked").path / "validation.json").write_text(json.dumps(noted))
    assert Reports(runs).examples(run, "masked") == noted
    for wrong in ("causal", "nobody", "../masked", ""):
        with pytest.raises(InputError):
            Reports(runs).examples(run, wrong)
    runs.delete(run)
    assert runs.ids() == []


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"texts": ["/etc/passwd"]}},
        {"data": {"texts": ["primer/english-*.txt"], "held_out_texts": ["/etc/passwd"]}},
        {"entrants": RACE["entrants"][:1]},
        {"entrants": [{"name": "../x", "size": "bert-mini"}, *RACE["entrants"]]},
        {"entrants": 3},
        {"budget": {}},
        {"measures": {"probes": ["/etc"]}},
        {"data": RACE["data"] | {"held_out": 0.0}},  # no words to guess, as the run would say
    ],
)
def test_a_race_from_a_page_is_checked(make_runs, change):
    runs = make_runs()
    with pytest.raises(InputError):
        runs.create(RACE | change)
    assert runs.ids() == []


def test_the_language_of_a_model_is_told_by_its_vocabulary():
    shipped = run_models.Path(__file__).resolve().parents[2] / "assets" / "models"
    found = {path.name: run_models.language(path) for path in shipped.iterdir() if path.is_dir()}
    chinese = {name for name, language in found.items() if language == "zh"}
    assert chinese == {name for name in found if "chinese" in name}
    assert set(found.values()) == {"en", "zh"}


def test_names_of_models_do_not_tell_where_they_lie(tmp_path):
    root = tmp_path
    names = {
        root / "a" / "model": "run/a",
        root / "a" / "snapshots" / "step-8": "run/a/step-8",
        root / "race" / "masked" / "model": "run/race/masked",
    }
    for path, name in names.items():
        assert run_models.name_of(str(path), root) == name
    assert run_models.name_of("bert-mini", root) == "bert-mini"
