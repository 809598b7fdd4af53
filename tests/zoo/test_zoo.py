"""The recipe of the shipped set, run from a clean clone at a tiny budget."""

import json
import lzma
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
import torch

import core_models as cm
from core_models.checkpoints import aside
from core_models.checkpoints.files import read_tensors
from core_models.data import documents
from core_models.errors import InputError
from core_models.evaluation.minimal_pairs import read_pairs
from core_models.training.__main__ import main as train
from core_models.training.badges import badges
from core_models.training.folder import RunFolder, read_json
from core_models.training.settings import parse
from zoo import build, cards, measure, recipe, text, weights
from zoo.__main__ import main
from zoo.report import _PREDICTING, report

ZOO = recipe.read()
SENTENCE = "The {} of number {} was seen near the river in the morning."
CHINESE = "第{}个人早上在河边看见了{}只鸟。"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small file for every pattern that the recipe samples."""
    folder = tmp_path_factory.mktemp("data")
    for part in [part for made in ZOO.texts.values() for part in made.sampled]:
        path = folder / part.pattern.replace("*", "01")
        path.parent.mkdir(exist_ok=True)
        chinese = part.pattern.startswith("chinese/")
        blocks = [
            "".join(CHINESE.format(number, n) for n in range(3))
            if chinese
            else " ".join(SENTENCE.format(path.name[:5], number + n) for n in range(3))
            for number in range(12)
        ]
        with lzma.open(path, "wt", encoding="utf-8") as file:
            file.write("\n\n".join(blocks) + "\n")
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def small() -> recipe.Zoo:
    """The recipe with a single file of the project's own text, read once, and fewer tokens."""
    texts = {}
    for name, made in ZOO.texts.items():
        own = made.repeated[0]
        file = own.pattern.replace("english-*", "english-life")
        own = own.model_copy(update={"pattern": file, "times": 1})
        texts[name] = made.model_copy(update={"repeated": [own]})
    smoke = ZOO.budgets["smoke"].model_copy(update={"tokens": 8_000})
    return ZOO.model_copy(update={"texts": texts, "budgets": ZOO.budgets | {"smoke": smoke}})


@pytest.fixture
def same_process(monkeypatch: pytest.MonkeyPatch, in_process: None) -> None:
    """Train here, and not in a process of its own, which takes seconds to import PyTorch."""
    del in_process

    def run(command: list[str], *, check: bool) -> SimpleNamespace:
        assert command[:3] == [sys.executable, "-m", "core_models.training"]
        assert not check
        return SimpleNamespace(returncode=train(command[3:]))

    monkeypatch.setattr(build, "subprocess", SimpleNamespace(run=run))
    monkeypatch.setattr(measure, "FORGERY_SENTENCES", 40)


@pytest.mark.parametrize("name", ZOO.models)
@pytest.mark.parametrize("budget", ZOO.budgets)
def test_every_model_has_valid_settings_in_every_budget(name: str, budget: str) -> None:
    settings = ZOO.run_settings(name, budget)
    settings["data"] = settings["data"] | {"texts": ["train.txt"]}
    parsed = parse(settings | {"steps": 10_000})
    assert parsed.name == name


def test_a_budget_may_change_text_tokens_and_start_of_a_model() -> None:
    cpu = ZOO.at("cpu")
    assert cpu.models["bert-mini"].text == "english"
    assert cpu.tokens("roberta-mini", "cpu") == ZOO.budgets["cpu"].tokens
    assert cpu.models["deberta-mini"].text == "english_set"
    assert cpu.tokens("bert-mini", "cpu") == 14_000_000
    assert cpu.run_settings("roberta-mini", "cpu")["model"]["encoder_from"] == "bert-mini"
    assert cpu.tokens("electra-mini", "cpu") == 8_000_000
    second, third, *more = cpu.models["bert-mini"].then
    assert (second.text, third.tokens) == ("english_set", 17_200_000)
    assert [cpu.later_settings("bert-mini", "cpu", each)["batch_size"] for each in more] == [64, 64]
    later = cpu.later_settings("bert-mini", "cpu", second)
    assert later["model"] == {"dropout": 0.0}
    assert later["masking"] == {"dynamic": True, "rate": 0.3}
    given = {"texts": ["a.txt"]}
    parse(later | {"data": given, "steps": 9_000, "model": {"checkpoint": "a"}})
    assert cpu.models["electra-mini"].note != ZOO.budgets["cpu"].note
    assert cpu.models["causal-mini"].note == ZOO.budgets["cpu"].note
    assert cpu.models["bert-mini"].note.startswith("It read 173 million tokens")
    assert [name for name in ZOO.models if cpu.is_chinese(name)] == [
        "bert-mini-chinese",
        "macbert-mini-chinese",
    ]
    assert cpu.models["modernbert-mini"].text == "english_set"
    assert ZOO.at("gpu").models["modernbert-mini"].text == "english"
    gpu = ZOO.at("gpu")
    assert "encoder_from" not in gpu.run_settings("electra-mini", "gpu")["model"]
    assert gpu.models["electra-mini"].note == ""
    assert gpu.models["bert-mini"].then == []
    for name in ZOO.models:
        settings = cpu.run_settings(name, "cpu")
        parse(settings | {"data": settings["data"] | {"texts": ["a.txt"]}, "steps": 10_000})
    with pytest.raises(InputError, match="No budget 'tpu'"):
        ZOO.at("tpu")


def test_models_differ_in_family_and_objective_only() -> None:
    """Depth, width, inner width, vocabulary size, optimizer and seed are the same for all."""
    shared = set()
    for name in ZOO.models:
        settings = ZOO.run_settings(name, "cpu")
        over = settings["model"]["overrides"]
        shape = (over["layers"], over["width"], over["heads"], over["inner"])
        shared.add(
            json.dumps(
                [shape, settings["tokenizer"], settings["optimizer"], settings["seed"]],
                sort_keys=True,
            )
        )
    assert len(shared) == 1


def test_text_is_parted_before_it_is_repeated(data: Path, work: Path) -> None:
    made = text.build(work / "parted", ZOO.texts["english"], data)
    train = ["\n".join(d) for d in documents.read([made.train])]
    held = ["\n".join(d) for d in documents.read([made.held_out])]
    assert not set(train) & set(held)
    by_pattern = {fact["pattern"]: fact for fact in made.facts}
    primer = by_pattern["primer/english-*.txt"]
    assert (primer["documents"], primer["held_out_documents"]) == (580, 30)
    assert len(train) == sum(int(f["documents"]) * int(f["times"]) for f in made.facts)
    assert len(held) == sum(int(f["held_out_documents"]) for f in made.facts)
    open_documents = ["\n".join(d) for d in documents.read([made.open])]
    assert open_documents == held[30:], "the sampled sources' come after the Primer's"
    assert open_documents
    again = made.train.read_bytes()
    shutil.rmtree(work / "parted")
    assert text.build(work / "parted", ZOO.texts["english"], data).train.read_bytes() == again


def test_equal_documents_of_a_text_stay_together(tmp_path: Path) -> None:
    """What is held out would otherwise also be read, in other letters."""
    folder = tmp_path / "data" / "english"
    folder.mkdir(parents=True)
    songs = [f"Song {n} is sung.\nIt goes on." for n in range(12)]
    louder = [song.upper().replace("\n", " \n") for song in songs]
    others = [f"Story {n} is told." for n in range(12)]
    (folder / "all.txt").write_text("\n\n".join([*songs, *others, *louder]))
    part = recipe.Sampled(pattern="english/*.txt", words=10_000, held_out=0.4)
    held_songs = 0
    for seed in range(5):
        alone = recipe.TextRecipe(sampled=[part], seed=seed)
        made = text.build(tmp_path / f"text-{seed}", alone, tmp_path / "data")
        train, held = (
            [documents.content(document) for document in documents.read([path])]
            for path in (made.train, made.held_out)
        )
        assert not set(train) & set(held)
        assert len(train) + len(held) == 36
        held_songs += len(held) - len(set(held))
    assert held_songs, "or equal ones were never held out, and the test says nothing"


def test_a_sample_ends_at_its_words(data: Path, tmp_path: Path) -> None:
    part = recipe.Sampled(pattern="english/health-*.txt.xz", words=80)
    made = text.build(tmp_path / "t", recipe.TextRecipe(repeated=[], sampled=[part]), data)
    assert made.facts[0]["words"] == 78  # two documents of 39 words
    with pytest.raises(InputError, match="--data"):
        text.build(tmp_path / "u", recipe.TextRecipe(repeated=[], sampled=[part]), None)
    with pytest.raises(InputError, match="Nothing matches"):
        text.build(tmp_path / "v", recipe.TextRecipe(repeated=[], sampled=[part]), tmp_path)


def test_chinese_text_is_counted_in_characters(data: Path, tmp_path: Path) -> None:
    part = recipe.Sampled(pattern="chinese/luxun-*.txt.xz", words=80)
    made = text.build(tmp_path / "t", recipe.TextRecipe(repeated=[], sampled=[part]), data)
    facts = made.facts[0]
    assert (facts["documents"], facts["words"]) == (2, 2 * 3 * 13)  # numbers and marks left out
    first = next(iter(documents.read([made.train])))
    assert len(first) == 3  # sentences


def test_two_that_want_a_text_at_once_write_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written, second = text._write, [], threading.Event()
    taken = aside._taken

    def slow(folder: Path, *rest: Any) -> None:
        written.append(folder)
        assert second.wait(60), "the second one never came to wait"
        write(folder, *rest)

    def take(path: Path) -> IO[str]:
        if written:
            second.set()  # the first one writes: this one comes second
        return taken(path)

    monkeypatch.setattr(text, "_write", slow)
    monkeypatch.setattr(aside, "_taken", take)
    repeated = [recipe.Repeated(pattern="atlas/english-atlas.txt", times=1)]
    recipes = {"one": recipe.TextRecipe(repeated=repeated)}
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: text.of(recipes, "one", tmp_path / "t", None), range(2)))
    assert made[0] == made[1]
    assert len(written) == 1


def test_a_text_keeps_apart_from_what_another_holds_out(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "english"
    folder.mkdir(parents=True)
    shared = (
        "A long sentence that stands in two documents shows that one holds a part of the other."
    )
    texts = [f"Document {n} is short. So is this." for n in range(20)]
    (folder / "all.txt").write_text("\n\n".join([*texts, f"Here. {shared}", f"There. {shared}"]))
    part = recipe.Sampled(pattern="english/*.txt", words=10_000, held_out=0.3)
    whole = part.model_copy(update={"held_out": 0.0})
    recipes = {
        "first": recipe.TextRecipe(sampled=[part], seed=4),
        "more": recipe.TextRecipe(sampled=[whole], apart_from="first"),
    }
    more = text.of(recipes, "more", tmp_path / "texts", tmp_path / "data")
    held = list(documents.read([tmp_path / "texts" / "first" / text.HELD_OUT]))
    train = list(documents.read([more.train]))
    assert any(shared in document for document in held), "or the seed must change"
    assert not any(shared in document for document in train)
    assert all(document not in held for document in train)
    alone = [document for document in held if shared not in document]
    assert len(train) + len(alone) == len(texts)
    # The other text holds out other documents: this one is written anew.
    recipes["first"] = recipes["first"].model_copy(update={"seed": 5})
    more = text.of(recipes, "more", tmp_path / "texts", tmp_path / "data")
    other = list(documents.read([tmp_path / "texts" / "first" / text.HELD_OUT]))
    assert other != held
    assert all(document not in other for document in documents.read([more.train]))
    made = (tmp_path / "texts" / "more").stat().st_ino
    text.of(recipes, "more", tmp_path / "texts", tmp_path / "data")
    assert (tmp_path / "texts" / "more").stat().st_ino == made, "what is there stays"


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("bert-mini", "electra-mini")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in ZOO.models
    ],
)
def test_every_model_is_trained_evaluated_and_exported(
    name: str, small: recipe.Zoo, data: Path, work: Path, request: pytest.FixtureRequest
) -> None:
    if name != next(iter(ZOO.models)):  # the first as people do
        request.getfixturevalue("same_process")
    if small.run_settings(name, "smoke")["data"].get("chinese_words"):
        pytest.importorskip("jieba")
    lines: list[str] = []
    run = build.train(small, name, budget="smoke", work=work, data=data, say=lines.append)
    tokens = run.status()["tokens"]
    budget = small.budgets["smoke"].tokens
    assert 0.8 * budget < tokens < 1.25 * budget
    held_out = work / "texts" / small.models[name].text / text.HELD_OUT
    results = build.evaluate(run, held_out, words=20, pairs=read_pairs()[::60])
    target = work / "models"
    build.export(small, name, run, results, target)
    model = cm.load(target / name)
    assert model.config.steps == 2
    card = (target / name / "README.md").read_text(encoding="utf-8")
    assert small.models[name].title in card
    assert f"{run.status()['steps']:,} steps" in card
    badge = json.loads((target / name / "cloze.json").read_text(encoding="utf-8"))
    assert set(badge["trained"]) == set(model.heads)
    figures = json.loads((target / name / "evaluation.json").read_text(encoding="utf-8"))
    if "replaced_token" in model.heads:
        generator = cm.load(target / f"{name}{cards.GENERATOR}")
        assert "masked_token" in generator.heads
        assert 0 <= figures["forgeries"]["auc"] <= 1
    else:
        assert figures["words"]["words"] == 20
        english = small.models[name].text == "english"
        assert ("minimal_pairs" in figures) == english
        assert f"language: {'en' if english else 'zh'}" in card
    assert figures["run"]["tokens"] == tokens
    assert {t.dtype for t in read_tensors(target / name).values()} == {torch.float16}
    assert {t.dtype for t in read_tensors(run.model_path).values()} == {torch.float32}
    assert {b.state for b in badges(target / name) if b.head in model.heads} == {"trained"}
    assert {b.state for b in badges(run.model_path) if b.head in model.heads} == {"trained"}
    # What is done is not done again.
    again = build.train(small, name, budget="smoke", work=work, data=data, say=lines.append)
    assert again.metrics() == run.metrics()
    page = report(target)
    assert f"| {name} | {small.models[name].title} |" in page


def test_a_run_notes_the_commit_of_its_code(tmp_path: Path) -> None:
    assert weights.commit(tmp_path) is None
    for words in (
        ["init", "--quiet"],
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "c"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    code = weights.commit(tmp_path)
    assert code is not None
    assert re.fullmatch("[0-9a-f]{8}", code)
    (tmp_path / "a.py").touch()
    assert weights.commit(tmp_path) == f"{code}, changed"


def test_a_card_says_how_many_processes_trained() -> None:
    results = {"run": {"processes": 4}, "environment": {"device": "cpu", "threads": 2}}
    assert cards.machine(results) == "2 CPU threads in each of 4 processes"


@pytest.mark.parametrize(
    ("measured", "trained"),
    [
        (("masked_next_token", "causal"), ["causal"]),
        (("masked_diffusion",), ["masked_token"]),
        (("masked_token", "next_sentence"), ["masked_token", "next_sentence"]),
    ],
)
def test_a_card_names_the_heads_that_objectives_train(
    tmp_path: Path, measured: tuple[str, ...], trained: list[str]
) -> None:
    """What is told as pieces right is that of the objective which most of the training was."""
    held_out = {"loss": 3.0}
    for name in reversed(measured):
        held_out |= {f"{name}_loss": 3.0, f"{name}_accuracy": 0.3 if name == measured[0] else 0.1}
    data = {"vocabulary": 9, "documents": 2, "tokens": 9, "held_out_documents": 1}
    facts = {"tokens": 9, "steps": 1, "seconds": 1.0, "data": data, "held_out": held_out}
    results = {"model": {}, "run": facts, "environment": {"device": "cpu", "threads": 1}}
    results["commit"] = "0123abcd"
    cards.write(tmp_path, ZOO, "bert-mini", RunFolder(tmp_path / "run"), results)
    assert json.loads((tmp_path / "cloze.json").read_text("utf-8"))["trained"] == trained
    figures = json.loads((tmp_path / "evaluation.json").read_text("utf-8"))
    del held_out["loss"]
    assert figures["run"]["held_out"] == held_out
    assert figures["run"]["machine"] == "1 CPU thread"
    assert figures["run"]["commit"] == "0123abcd"
    assert "| commit | 0123abcd |" in (tmp_path / "README.md").read_text("utf-8")
    entry = SimpleNamespace(training=figures["run"])
    assert _PREDICTING["pieces right"](entry) == "30.0 %"


@pytest.mark.slow
def test_later_runs_go_on_with_both_models_of_the_one_before(
    small: recipe.Zoo, data: Path, tmp_path: Path, same_process: None
) -> None:
    name = "electra-mini"
    settings = {"generator": {"temperature": 2.0}, "optimizer": {"learning_rate": 1e-6}}
    second = recipe.Later(tokens=3_000, settings=settings)
    model = small.models[name].model_copy(update={"then": [second, second]})
    zoo = small.model_copy(update={"models": small.models | {name: model}})
    lines: list[str] = []

    def trained() -> RunFolder:
        return build.train(zoo, name, budget="smoke", work=tmp_path, data=data, say=lines.append)

    run = trained()
    first = RunFolder(tmp_path / "runs" / name)
    all_runs = [first, RunFolder(first.path.with_name(f"{name}-second")), run]
    assert len({each.path for each in all_runs}) == 3
    found = parse(json.loads(run.config_path.read_text(encoding="utf-8")))
    assert found.generator.temperature == 2.0
    assert found.masking == parse(json.loads(first.config_path.read_text(encoding="utf-8"))).masking
    for part in ("model", "generator"):  # at such a rate they are still what they began as
        began, ended = (read_tensors(each.path / part) for each in (first, run))
        assert began.keys() == ended.keys()
        assert all(torch.allclose(began[key], ended[key], atol=1e-4) for key in began)
    assert any(not torch.equal(began[key], ended[key]) for key in began)
    held_out = tmp_path / "texts" / model.text / text.HELD_OUT
    results = build.evaluate(run, held_out, words=20, pairs=read_pairs()[::60])
    for read in ("tokens", "steps"):
        assert results["run"][read] == sum(each.status()[read] for each in all_runs)
    assert results["run"]["data"]["tokens"] == read_json(run.path / build.RESULTS)["data"]["tokens"]
    build.export(zoo, name, run, results, tmp_path / "models")
    assert cm.load(tmp_path / "models" / name).heads.keys() == cm.load(run.model_path).heads.keys()
    assert trained().metrics() == run.metrics()


def test_a_run_more_goes_on_with_shipped_models(
    small: recipe.Zoo, data: Path, tmp_path: Path, same_process: None
) -> None:
    """Discriminator and generator as they were shipped stand for every run that led to them."""
    name = "electra-mini"
    later = recipe.Later(tokens=2_000, settings={"optimizer": {"learning_rate": 1e-6}})
    own = small.models[name]

    def made(runs: int, work: str, shipped: Path | None = None) -> tuple[RunFolder, dict[str, Any]]:
        model = own.model_copy(update={"then": [later] * (runs - 1)})
        zoo = small.model_copy(update={"models": {name: model}})
        run = build.train(
            zoo, name, budget="smoke", work=tmp_path / work, data=data, say=str, shipped=shipped
        )
        asked = Path(read_json(run.config_path)["data"]["held_out_texts"][0])
        results = build.evaluate(run, asked, words=5, pairs=read_pairs()[::300])
        build.export(zoo, name, run, results, tmp_path / work / "models")
        return run, results["run"]

    _, before = made(1, "one")
    shipped = tmp_path / "one" / "models"
    with pytest.raises(InputError, match="one run of electra-mini"):
        made(1, "two", shipped)
    with pytest.raises(InputError, match="no model whose training is known"):
        made(3, "two", tmp_path / "empty")
    run, after = made(3, "two", shipped)
    assert sorted(path.name for path in run.path.parent.iterdir()) == [
        f"{name}-second",
        f"{name}-third",
    ]
    for read in ("tokens", "steps"):
        assert after[read] == before[read] + run.status()[read]
    assert after["data"] == before["data"]
    for part, whose in (("model", name), ("generator", f"{name}-generator")):
        began, ended = read_tensors(shipped / whose), read_tensors(run.path / part)
        assert began.keys() == ended.keys()
        assert all(torch.allclose(began[key].float(), ended[key], atol=1e-3) for key in began)
    shown = read_json(tmp_path / "two" / "models" / name / "evaluation.json")["run"]
    assert shown["tokens"] == after["tokens"]
    assert made(3, "two", shipped)[0].metrics() == run.metrics()


def test_a_second_run_may_read_another_text(
    small: recipe.Zoo, data: Path, tmp_path: Path, same_process: None
) -> None:
    name = "bert-mini"
    then = ZOO.at("cpu").models[name].then[0]
    assert then.text == "english_set"
    settings = {"masking": then.settings["masking"], "data": then.settings["data"]}
    second = recipe.Later(tokens=3_000, text=then.text, settings=settings)
    model = small.models[name].model_copy(update={"then": [second]})
    own = small.texts["english"].repeated
    open_text = ZOO.texts["english"].sampled[-1:]
    texts = {
        "english": recipe.TextRecipe(repeated=own, sampled=open_text),
        "english_set": recipe.TextRecipe(repeated=own, apart_from="english"),
    }
    zoo = small.model_copy(update={"models": {name: model}, "texts": texts})
    run = build.train(zoo, name, budget="smoke", work=tmp_path, data=data, say=lambda line: None)
    found = parse(read_json(run.config_path))
    assert found.data.texts == [str(tmp_path / "texts" / "english_set" / text.TRAIN)]
    assert found.data.held_out_texts == [str(tmp_path / "texts" / "english" / text.OPEN)]
    assert found.masking.rate == settings["masking"]["rate"]
    results = build.evaluate(
        run, tmp_path / "texts" / "english" / text.HELD_OUT, words=5, pairs=read_pairs()[::300]
    )
    first = RunFolder(tmp_path / "runs" / name)
    read = [read_json(each.path / build.RESULTS)["data"]["tokens"] for each in (first, run)]
    assert results["run"]["data"]["tokens"] == sum(read)
    build.export(zoo, name, run, results, tmp_path / "models")
    shown = report(tmp_path / "models")
    assert "| english, english_set |" in shown
    assert "Text `english_set`, without what `english` holds out:" in shown
    card = (tmp_path / "models" / name / "README.md").read_text(encoding="utf-8")
    assert card.count("the Primer, written for this project") == 2


def test_unusable_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "zoo.json"
    with pytest.raises(InputError, match="no file"):
        recipe.read(path)
    long, deep = b"9" * 5000, b"[" * 99_999
    for content, reason in (
        (b"{", "line 1"),
        (b"\xff", "utf-8"),
        (long, "thousands"),
        (deep, "deep"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"not JSON: .*{reason}"):
            recipe.read(path)
    path.write_text('{"texts": {}, "budgets": {}, "common": {}, "modells": {}}')
    with pytest.raises(InputError, match=r"(?s)models: Field required.*modells: Extra"):
        recipe.read(path)
    assert main(["build", "--recipe", str(tmp_path)]) == 2
    assert f"error: {tmp_path}: Is a directory" in capsys.readouterr().err
    assert main(["build", "bert-maxi"]) == 2
    assert "No model 'bert-maxi'" in capsys.readouterr().err
    assert main(["build", "bert-mini", "--budget", "none"]) == 2
    assert "No budget 'none'" in capsys.readouterr().err
