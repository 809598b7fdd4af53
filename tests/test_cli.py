"""The command line as people run it: a process with arguments, two streams and an exit code."""

import io
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.cli.main import VERBS, main
from core_models.cli.output import Output

ROOT = Path(__file__).resolve().parent.parent
TEXT = "The capital of France is [MASK]."
SENTENCES = [
    "The capital of France is Paris.",
    "The capital of Italy is Rome.",
    "A cat and a dog play in the garden.",
    "The river runs to the sea.",
]


def process(*arguments: str | bytes, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """``python -m core_models ARGUMENTS`` as a shell starts it."""
    command = [sys.executable, "-m", "core_models", *arguments]
    return subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, timeout=120)


@pytest.fixture
def run(capsys, monkeypatch):
    """The same inside this process (torch is loaded once): exit code, output, messages."""

    def call(*arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            code = main(arguments)
        except SystemExit as stopped:
            code = stopped.code
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def refused(run):
    """The message of a command that must end with code 2 and print no result."""

    def call(*arguments: str, stdin: str | bytes = "") -> str:
        code, out, err = run(*arguments, stdin=stdin)
        assert (code, out) == (2, ""), err
        return err

    return call


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> str:
    """A tiny model with random weights, saved as training saves it."""
    tokenizer = cm.Tokenizer.train(SENTENCES, vocabulary=120)
    config = cm.size("bert-2x128").with_vocabulary(tokenizer.vocabulary)
    model = cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(0))
    path = tmp_path_factory.mktemp("models") / "tiny"
    model.save(path)
    return str(path)


# --- fill -----------------------------------------------------------------------------------------


def test_fill_prints_ranks_probabilities_and_words(run, folder):
    code, out, err = run("fill", TEXT, "--model", folder, "--top-k", "3")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [line[0] for line in lines] == ["1", "2", "3"]
    assert all(line[2] == "%" for line in lines)
    shares = [float(line[1]) for line in lines]
    assert shares == sorted(shares, reverse=True)


def test_fill_json_is_what_the_library_says(run, folder):
    from core_models.prediction import fill

    code, out, _ = run("fill", TEXT, "--model", folder, "--json")
    result = json.loads(out)
    expected = fill(cm.load(folder), TEXT, top_k=5).predictions
    assert code == 0
    assert result["model"] == "tiny"
    assert len(result["predictions"]) == 1
    assert len(result["predictions"][0]["candidates"]) == 5
    for mine, theirs in zip(
        result["predictions"][0]["candidates"], expected[0].candidates, strict=True
    ):
        assert mine["id"] == theirs.id
        assert mine["probability"] == pytest.approx(theirs.probability, rel=1e-4)


def test_fill_takes_several_gaps_pairs_and_watched_words(run, folder):
    _, out, _ = run(
        "fill", "The [MASK] of [MASK].", "--pair", "A [MASK].", "--model", folder, "--json",
        "--watch", "paris", "--watch", "dog",
    )  # fmt: skip
    predictions = json.loads(out)["predictions"]
    assert len(predictions) == 3
    assert all(len(prediction["watched"]) == 2 for prediction in predictions)


def test_fill_prints_a_heading_for_each_of_several_gaps(run, folder):
    _, out, _ = run("fill", "The [MASK] of [MASK].", "--model", folder, "--top-k", "2")
    assert [line for line in out.splitlines() if line.startswith("[MASK]")] == [
        "[MASK] 1, token 2",
        "[MASK] 2, token 4",
    ]


def test_fill_without_a_gap_says_how_to_write_one(refused, folder):
    assert "write [MASK]" in refused("fill", "The capital of France.", "--model", folder)


@pytest.mark.parametrize("text", ["", "   ", "x" * 100_000])
def test_fill_refuses_texts_that_cannot_be_used(refused, folder, text):
    assert refused("fill", text, "--model", folder).startswith("error: ")


@pytest.mark.parametrize("option", ["--watch", "--pair"])
def test_fill_names_the_option_that_is_empty(refused, folder, option):
    message = refused("fill", TEXT, "--model", folder, option, " ")
    assert message.startswith(f"error: {option} is empty")


def test_fill_takes_any_script(run, folder):
    code, out, err = run("fill", "[MASK] 猫 🧩 مرحبا <script>", "--model", folder, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["predictions"]


def test_unknown_model_lists_what_there_is(refused):
    message = refused("fill", TEXT, "--model", "nobody-knows-it")
    assert "nobody-knows-it" in message
    for info in cm.models():
        assert info.name in message


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_top_k_must_be_a_positive_number(refused, value):
    assert "--top-k" in refused("fill", TEXT, "--top-k", value)


def test_what_is_no_number_is_told_in_words(refused):
    said = refused("fill", TEXT, "--top-k", "x")
    assert "argument --top-k: 'x' is no whole number; give 1 or more" in said
    said = refused("evaluate", "--seed", "x")
    assert "argument --seed: 'x' is no whole number; give 0 to 2^63 - 1" in said
    said = refused("finetune", "bert-mini", "topic", "--epochs", "2.5")
    assert "argument --epochs: '2.5' is no whole number\n" in said
    said = refused("finetune", "bert-mini", "topic", "--warmup", "x")
    assert "argument --warmup: 'x' is no number\n" in said


# --- score ----------------------------------------------------------------------------------------


def test_score_json_lines_match_the_library(run, folder, tmp_path):
    from core_models.prediction import score

    file = tmp_path / "sentences.txt"
    file.write_text("\ufeff" + "\n\n".join(SENTENCES) + "\n", "utf-8")
    code, out, err = run("score", str(file), "--model", folder, "--json")
    assert (code, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["text"] for record in records] == SENTENCES
    assert [record["line"] for record in records] == [1, 3, 5, 7]
    for record, expected in zip(records, score(cm.load(folder), SENTENCES), strict=True):
        assert record["total"] == pytest.approx(expected.total, rel=1e-4)
        assert record["tokens"] == expected.tokens
        assert "per_token" not in record


def test_score_of_tokens_adds_up(run, folder):
    _, out, _ = run("score", "-", "--model", folder, "--json", "--tokens", stdin=SENTENCES[2])
    record = json.loads(out)
    assert len(record["per_token"]) == record["tokens"]
    total = sum(token["score"] for token in record["per_token"])
    assert total == pytest.approx(record["total"], rel=1e-5)


def test_score_prints_a_line_for_each_text(run, folder):
    _, out, _ = run("score", "-", "--model", folder, stdin="\n".join(SENTENCES))
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[2] for row in rows] == SENTENCES
    assert all(float(row[0]) < 0 for row in rows)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_score_counts_lines_whatever_ends_them(run, folder, end):
    text = f"{SENTENCES[0]}{end}{end}{SENTENCES[1]}"
    _, out, _ = run("score", "-", "--model", folder, "--json", stdin=text)
    records = [json.loads(line) for line in out.splitlines()]
    assert [(r["line"], r["text"]) for r in records] == [(1, SENTENCES[0]), (3, SENTENCES[1])]


@pytest.mark.slow
def test_score_ends_quietly_when_its_reader_does(folder):
    command = f"'{sys.executable}' -m core_models score - --model '{folder}' | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        input=("\n".join(SENTENCES) + "\n").encode() * 200,
        capture_output=True,
    )
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["models"], ["count", "bert-base", "--json"]])
def test_a_full_disk_is_told_in_a_sentence(arguments, capsys, monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("error: The disk is full")


def test_paths_that_the_system_refuses_are_told_in_a_line(refused, tmp_path):
    file, recipe = tmp_path / "file", tmp_path / "recipe.json"
    file.touch()
    values = {"model": {"size": "bert-tiny"}, "data": {"texts": [str(file)]}, "steps": 1}
    recipe.write_text(json.dumps(values))
    for run in (file, file / "run", tmp_path / ("long" * 80)):
        said = refused("train", str(recipe), "--run", str(run))
        assert str(run) in said
        assert said.count("\n") == 1
    long = str(tmp_path / ("long" * 80))
    assert "too long" in refused("push", long, "owner/name")
    assert "too long" in refused("finetune", long, "sentiment", "--save", long)
    assert "too long" in refused("train", f"{long}/config.json")


def test_an_error_of_ours_is_no_message(monkeypatch):
    def broken(*_: object) -> int:
        raise OSError("a defect")

    monkeypatch.setattr("core_models.cli.models.run", broken)
    with pytest.raises(OSError, match="a defect"):
        main(["models"])


def test_evaluate_looks_at_its_text_before_it_measures(refused, folder, tmp_path, monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError("measured first")

    monkeypatch.setattr("core_models.evaluation.evaluate_plain_sentences", never)
    text = tmp_path / "text.txt"
    text.write_text("\n \n")
    assert "--text holds no sentence" in refused("evaluate", "--model", folder, "--text", str(text))
    text.write_text("Rain!\n")
    assert "two words" in refused("evaluate", "--model", folder, "--text", str(text))
    assert "needs --text" in refused("evaluate", "--model", folder, "--generator", folder)
    text.write_text("The river was cold.\n")
    judged = ("evaluate", "--model", folder, "--text", str(text), "--generator")
    assert "no replaced-token head" in refused(*judged, folder)


def test_evaluate_asks_no_generator_of_a_model_that_judges_none(refused, folder, tmp_path):
    classifier = tmp_path / "classifier"
    cm.load(folder).with_head("classify", ["a", "b"]).save(classifier)
    said = refused("evaluate", "--model", str(classifier))
    assert "predicts no pieces (heads: classify); measure a pretrained model" in said


def test_score_refuses_texts_without_a_line(refused, tmp_path):
    void = tmp_path / "void.txt"
    void.write_text("\n \n")
    said = f"error: {void} has no line to score; write one text per line.\n"
    assert refused("score", str(void)) == said
    assert "Standard input has no line" in refused("score", "-")


def test_score_refuses_files_that_cannot_be_read(refused, folder, tmp_path):
    missing = tmp_path / "missing.txt"
    assert str(missing) in refused("score", str(missing), "--model", folder)
    assert "error: " in refused("score", str(tmp_path), "--model", folder)
    assert "not UTF-8" in refused("score", "-", "--model", folder, stdin=b"\xff\xfe\x00")


def test_score_names_the_line_that_cannot_be_scored(refused, folder):
    long = "word " * 10_000
    assert "line 3: " in refused("score", "-", "--model", folder, stdin=f"\n\n{long}\n")


# --- models, count, diff, train -------------------------------------------------------------------


def test_models_lists_folders_that_the_environment_names(run, folder, monkeypatch):
    monkeypatch.setenv("CLOZE_MODELS", str(Path(folder).parent))
    code, out, _ = run("models", "--json")
    found = {model["name"]: model for model in json.loads(out)}
    assert code == 0
    assert found["tiny"]["family"] == "bert"
    assert set(found["tiny"]["heads"]) == {"masked_token", "next_sentence"}
    assert "tiny" in run("models")[1]


def test_count_agrees_with_the_library(run):
    code, out, _ = run("count", "bert-base-uncased", "--json")
    assert code == 0
    assert json.loads(out)["base"] == cm.count("bert-base-uncased").base == 109_482_240
    assert "109,482,240" in run("count", "bert-base-uncased")[1]


def test_count_says_one_token_as_people_do(run):
    for length, said in (("1", "sequence of 1 token\n"), ("2", "sequence of 2 tokens\n")):
        assert said in run("count", "bert-mini", "--length", length)[1]


def test_diff_agrees_with_the_library(run):
    code, out, _ = run("diff", "bert-mini", "bert-base", "--json")
    paths = [item["path"] for item in json.loads(out)["differences"]]
    assert code == 0
    assert paths == [item.path for item in cm.diff("bert-mini", "bert-base")]
    assert "schedule" in run("diff", "bert-mini", "bert-base")[1]
    assert run("diff", "bert-base", "bert-base")[1] == "No difference.\n"


def test_unknown_sizes_are_refused(refused):
    assert "bert-base-uncased" in refused("count", "bert-enormous")
    assert "bert-enormous" in refused("diff", "bert-base", "bert-enormous")
    assert "python -m core_models models" in refused("count", "bert-enormous")


def test_a_folder_without_a_model_is_told_as_such(refused, tmp_path):
    for verb in (("count", str(tmp_path)), ("diff", str(tmp_path), "bert-mini")):
        assert f"{tmp_path.name} has no config.json" in refused(*verb)
    (tmp_path / "config.json").write_text("{}")
    said = f"{tmp_path} is a folder; give the file {tmp_path / 'config.json'}."
    for more in ((), ("--preview",), ("--run", str(tmp_path / "run"))):
        assert said in refused("train", str(tmp_path), *more)


def test_a_preview_looks_for_texts_beside_the_recipe(refused, tmp_path):
    recipe = tmp_path / "mine.json"
    values = {"model": {"size": "bert-mini"}, "data": {"texts": ["none.txt"]}, "steps": 1}
    recipe.write_text(json.dumps(values))
    said = refused("train", str(recipe), "--preview")
    assert f"nothing matches 'none.txt', neither beside mine.json ({tmp_path})" in said


def test_train_refuses_a_missing_config(refused, tmp_path):
    for name in ("config.json", "recipe.json"):
        missing = tmp_path / name
        assert f"There is no file {missing}." in refused("train", str(missing))


def test_train_makes_a_run_from_a_recipe_and_a_model_that_fills(run, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join(SENTENCES * 4), "utf-8")
    recipe = {
        "model": {"size": "bert-2x128", "overrides": {"width": 32, "heads": 2, "inner": 64}},
        "tokenizer": {"vocabulary": 120},
        "data": {"texts": ["text.txt"], "max_length": 32, "duplicates": 1, "held_out": 0.0},
        "objectives": {"masked_token": 1.0},
        "batch_size": 2,
        "steps": 2,
        "threads": 1,
    }
    (tmp_path / "recipe.json").write_text(json.dumps(recipe), "utf-8")
    folder = tmp_path / "run"
    code, out, err = run("train", str(tmp_path / "recipe.json"), "--run", str(folder), "--json")
    assert code == 0, err
    assert json.loads(out)["state"] == "finished"
    assert run("fill", "A [MASK].", "--model", str(folder / "model"))[0] == 0


# --- the whole ------------------------------------------------------------------------------------


def test_every_verb_has_help_and_json(run):
    for verb in VERBS:
        code, out, _ = run(verb, "--help")
        assert code == 0
        assert "--json" in out


def test_help_does_not_wait_for_torch():
    code = "import sys; from core_models.cli.main import build_parser as b; b(); print(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "core_models.cli.main" in done.stdout
    assert "'torch'" not in done.stdout


@pytest.mark.parametrize("arguments", [[], ["paint"], ["fill"]])
def test_wrong_usage_ends_with_code_2(refused, arguments):
    assert "usage:" in refused(*arguments)


@pytest.mark.parametrize("seed", ["-1", "9" * 30, "one"])
def test_a_seed_that_no_generator_takes_is_wrong_usage(refused, seed):
    assert "--seed" in refused("evaluate", "--seed", seed)


def test_a_name_that_is_no_text_is_printed_all_the_same(monkeypatch):
    """A file's name on Linux is bytes; JSON spells those that are no text."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", out)

    def say() -> int:
        Output(sys.stdout).json({"name": "r\u00e9v\udce9.csv"})
        return 0

    monkeypatch.setattr("core_models.cli.main.main", say)
    with pytest.raises(SystemExit):
        runpy.run_module("core_models", run_name="__main__")
    out.flush()
    assert json.loads(out.buffer.getvalue().decode()) == {"name": "r\u00e9v\udce9.csv"}


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_streams_that_are_closed_are_no_defect(closed):
    """As those of a service are, which has nobody to write to."""
    verb = "score -" if closed == "<&-" else "count bert-base"
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m core_models {verb} {closed}"],
        cwd=ROOT,
        capture_output=True,
    )
    assert done.returncode == (2 if closed == "<&-" else 0)
    assert b"Traceback" not in done.stderr
    assert (b"has no line to score" in done.stderr) == (closed == "<&-")


@pytest.mark.slow
def test_a_process_refuses_bytes_that_are_no_text_without_a_traceback(folder):
    done = process("fill", b"\xff [MASK]", "--model", folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: ")


def test_the_shipped_model_knows_the_capital_of_france():
    done = process("fill", TEXT, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    result = json.loads(done.stdout)
    assert result["model"] == "bert-mini"
    assert "paris" in [c["display"] for c in result["predictions"][0]["candidates"]]
