"""A run's model as a zip: what is in it, and that transformers opens and computes the same."""

import json
import zipfile
from dataclasses import replace

import pytest
import torch
import transformers

import core_models as cm
from app.runs.export import archive as run_export
from app.runs.export.card_open import auto_class
from core_models.tokenizer.files import Template
from core_models.tokenizer.training import RECIPES
from core_models.training.process import train
from tests.core.tiny_models import tiny, tokenizer

TEXT = "red fox sees small dog"
PAIR = "old house in the tree"
CONFIG = {
    "name": "My run / très bien",
    "description": "To see | whether it works",
    "model": {"size": "bert-mini"},
    "data": {"texts": ["primer/english-*.txt"]},
    "steps": 40,
}
PRETRAINED = {
    "bert-tiny": "AutoModelForPreTraining",
    "roberta-base": "AutoModelForMaskedLM",
    "albert-base": "AutoModelForPreTraining",
    "spanbert-base-cased": "AutoModelForMaskedLM",
    "xlnet-base-cased": "AutoModelForCausalLM",
    "electra-small-discriminator": "AutoModelForPreTraining",
    "deberta-base": "AutoModelForMaskedLM",
    "deberta-v2-xlarge": "AutoModelForMaskedLM",
    "deberta-v3-small": "AutoModel",
    "macbert-base": "AutoModelForPreTraining",
}
LOGITS = {
    "masked_token": ("prediction_logits", "logits"),
    "next_sentence": ("seq_relationship_logits",),
    "sentence_order": ("sop_logits", "seq_relationship_logits"),
    "replaced_token": ("logits",),
    "causal": ("logits",),
}
UNKNOWN = {
    "spanbert-base-cased": "cls.pair_target_predictions.",
    "deberta-v3-small": "mask_predictions.",
}
"""Tensors of heads for which transformers has no class."""


@pytest.fixture
def runs(make_runs):
    """A folder for each test, in which nothing starts."""
    return make_runs()


def model(name="bert-tiny", heads=None, seed=1, **values):
    config = tiny(name, **values)
    source = torch.Generator().manual_seed(seed)
    return cm.Model.new(config, tokenizer(), heads=heads, generator=source).eval()


def finished(runs, made, *, generator=None, status=None, **config):
    """A run that has finished with a model; its id."""
    run = runs.create(CONFIG | config)
    folder = runs.folder(run)
    folder.save_model(made.save)
    if generator is not None:
        folder.save_model(generator.save, "generator")
    folder.append_metrics({"step": 20, "tokens": 900, "seconds": 3.0, "masked_token_loss": 4.0})
    about = {
        "family": made.config.family,
        "objectives": dict.fromkeys(made.config.objectives, 1.0),
        "state": "finished",
        "step": 40,
        "steps": 40,
        "baselines": {"uniform": 5.5, "unigram_entropy": 4.25},
        "data": {"documents": 60, "held_out_documents": 3, "tokens": 5_000, "vocabulary": 100},
        "environment": {"device": "cpu", "threads": 2},
    }
    folder.write_status(about | (status or {}))
    figures = {"masked_token_loss": 3.5, "masked_token_accuracy": 0.4}
    folder.write_evaluation({"steps": 40, "tokens": 1_900, "seconds": 400.0, "held_out": figures})
    return run


def unpacked(runs, run, path, step=None):
    """The zip of a run in a folder; the names of its top folders."""
    packed = run_export.pack(runs, run, step)
    with zipfile.ZipFile(packed.file) as archive:
        assert archive.testzip() is None
        archive.extractall(path)
    packed.file.close()
    return packed, sorted(each.name for each in path.iterdir())


def opened(folder):
    """Model and tokenizer of transformers, and what did not fit."""
    values = json.loads((folder / "config.json").read_text())
    auto = getattr(transformers, auto_class(values))
    found, info = auto.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    words = transformers.AutoTokenizer.from_pretrained(folder)
    return auto.__name__, found.eval(), words, {k: v for k, v in info.items() if v}


def assert_same_pieces(ours, words):
    for text in ((TEXT,), (TEXT, PAIR)):
        assert list(words(*text)["input_ids"]) == list(ours.tokenizer.encode(*text).ids)


@pytest.mark.parametrize("name", PRETRAINED)
def test_transformers_opens_what_a_pretraining_leaves(runs, tmp_path, name):
    made = model(name)
    run = finished(runs, made)
    _, (top,) = unpacked(runs, run, tmp_path / "zip")
    folder = tmp_path / "zip" / top
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "recipe.json"} <= {
        path.name for path in folder.iterdir()
    }
    auto, theirs, words, info = opened(folder)
    assert auto == PRETRAINED[name]
    unknown = UNKNOWN.get(name)
    if unknown is None:
        assert info == {}
    else:
        assert set(info) == {"unexpected_keys"}
        assert all(key.startswith(unknown) for key in info["unexpected_keys"])
    card = (folder / "README.md").read_text()
    assert f"import {auto}, AutoTokenizer" in card
    assert unknown is None or unknown in card
    assert_same_pieces(made, words)
    assert_same_states(made, theirs)
    assert_same_logits(made, theirs, name)
    again = cm.load(folder)
    assert set(again.heads) == set(made.heads)
    for key, tensor in again.state_dict().items():
        assert torch.equal(tensor, made.state_dict()[key]), key


def inputs(made):
    """The same for both; families without segments take none."""
    batch = made.batch([TEXT])
    values = {"input_ids": batch.input_ids}
    if made.config.embeddings.segments > 1 or made.config.query_stream:
        values["token_type_ids"] = batch.segment_ids
    return batch, values


def assert_same_states(made, theirs):
    batch, values = inputs(made)
    with torch.no_grad():
        body = theirs.base_model(**values).last_hidden_state
        torch.testing.assert_close(made.encoder(batch).hidden, body, atol=1e-5, rtol=1e-5)


def assert_same_logits(made, theirs, name):
    """Every head that transformers has, but for those the card says it computes otherwise."""
    batch, values = inputs(made)
    if made.config.query_stream or made.config.mask_decoder is not None:
        return  # orders of prediction, and DeBERTa's mask decoder
    with torch.no_grad():
        expected = theirs(**values)
        ours = _logits(made, batch)
    for head, logits in ours.items():
        names = [each for each in LOGITS.get(head, ()) if getattr(expected, each, None) is not None]
        if not names:
            assert name in UNKNOWN
            continue
        wanted = getattr(expected, names[0])
        torch.testing.assert_close(logits.reshape(wanted.shape), wanted, atol=1e-5, rtol=1e-5)


def _logits(made, batch):
    output = made.encoder(batch)
    found = {}
    for name, head in made.heads.items():
        if name in ("masked_token", "causal"):
            found[name] = head(made.encoder.decode(batch, output))
        elif name != "span_boundary":
            found[name] = head(output.hidden)
    return found


@pytest.mark.parametrize(
    ("name", "kind", "template"),
    [
        ("roberta-base", "byte_bpe", "doubled"),
        ("albert-base", "unigram", "enclosing"),
        ("xlnet-base-cased", "unigram", "trailing"),
    ],
)
def test_every_kind_of_vocabulary_is_read_alike(runs, tmp_path, name, kind, template):
    lines = [f"{TEXT} and the {PAIR} sings" for _ in range(30)]
    specials = RECIPES[kind].specials
    words = cm.Tokenizer.train(
        lines,
        vocabulary=300,
        kind=kind,
        template=getattr(Template, template)(specials),
    )
    config = tiny(name).with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    made = cm.Model.new(config, words, generator=torch.Generator().manual_seed(4)).eval()
    _, (top,) = unpacked(runs, finished(runs, made), tmp_path / "zip")
    _, theirs, read, info = opened(tmp_path / "zip" / top)
    assert info == {}
    assert_same_pieces(made, read)
    assert_same_states(made, theirs)


def test_a_causal_model_opens_as_one(runs, tmp_path):
    config = tiny("bert-tiny")
    config = replace(
        config,
        objectives=("causal",),
        attention=replace(config.attention, direction="left"),
        masking=replace(config.masking, kind="none"),
    )
    made = cm.Model.new(config, tokenizer(), generator=torch.Generator().manual_seed(2)).eval()
    _, (top,) = unpacked(runs, finished(runs, made), tmp_path / "zip")
    auto, theirs, words, info = opened(tmp_path / "zip" / top)
    assert (auto, info) == ("AutoModelForCausalLM", {})
    assert_same_pieces(made, words)
    assert_same_logits(made, theirs, "causal")
    assert "both sides" not in (tmp_path / "zip" / top / "README.md").read_text("utf-8")


def test_a_causal_head_that_sees_both_sides_says_so(runs, tmp_path):
    """transformers advises to make it a decoder, which would give other answers."""
    config = replace(tiny("bert-tiny"), objectives=("causal",))
    made = cm.Model.new(config, tokenizer(), generator=torch.Generator().manual_seed(2)).eval()
    _, (top,) = unpacked(runs, finished(runs, made), tmp_path / "zip")
    auto, theirs, words, info = opened(tmp_path / "zip" / top)
    assert (auto, info, theirs.config.is_decoder) == ("AutoModelForCausalLM", {}, False)
    assert_same_pieces(made, words)
    assert_same_logits(made, theirs, "causal")
    assert "but it sees both sides" in (tmp_path / "zip" / top / "README.md").read_text("utf-8")


HEADS = {
    "classify": ("AutoModelForSequenceClassification", ["no", "yes", "perhaps"]),
    "regress": ("AutoModelForSequenceClassification", []),
    "tag": ("AutoModelForTokenClassification", ["O", "B-PER", "I-PER"]),
    "span": ("AutoModelForQuestionAnswering", []),
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", ["bert-tiny", "roberta-base", "xlnet-base-cased", "deberta-base"])
def test_fine_tuned_heads_open_completely_and_answer_the_same(runs, tmp_path, name, head):
    auto, labels = HEADS[head]
    source = torch.Generator().manual_seed(3)
    made = model(name).with_head(head, labels, generator=source).eval()
    run = finished(
        runs, made, status={"objectives": {head: 1.0}, "task": {"labels": labels, "kind": "x"}}
    )
    _, (top,) = unpacked(runs, run, tmp_path / "zip")
    found, theirs, words, info = opened(tmp_path / "zip" / top)
    assert (found, info) == (auto, {})
    assert_same_pieces(made, words)
    if labels:
        assert list(theirs.config.id2label.values()) == labels
        assert f"Labels: {', '.join(labels)}." in (tmp_path / "zip" / top / "README.md").read_text()
    batch, values = inputs(made)
    with torch.no_grad():
        ours = made.heads[head](made.encoder(batch).hidden)
        expected = theirs(**values)
    wanted = (
        torch.stack([expected.start_logits, expected.end_logits], -1)
        if head == "span"
        else expected.logits
    )
    torch.testing.assert_close(ours.reshape(wanted.shape), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("head", "says"), [("regress", "answer"), ("similarity", "cosine")])
def test_the_card_says_how_scores_are_had_back_from_answers(runs, tmp_path, head, says):
    """The folder alone answers in 0..1, whatever the scale of its set."""
    made = model().with_head(head, generator=torch.Generator().manual_seed(3)).eval()
    task = {"kind": "regress", "labels": [], "scale": [-2.5, 5.0]}
    run = finished(runs, made, status={"objectives": {head: 1.0}, "task": task})
    _, (top,) = unpacked(runs, run, tmp_path / "zip")
    card = (tmp_path / "zip" / top / "README.md").read_text()
    assert f"{says}" in card.split("is no score yet")[0].splitlines()[-1]
    assert "0 for the lowest score of its set (-2.5) and 1 for the highest (5)" in card
    line = next(line for line in card.splitlines() if line.startswith("score ="))
    for answer, score in ((0.0, -2.5), (1.0, 5.0), (0.5, 1.25)):
        assert eval(line.partition("=")[2], {"answer": answer}) == score


@pytest.mark.parametrize(
    ("head", "options", "words"),
    [
        ("similarity", {"pooling": "mean"}, "the cosine is yours to take"),
        ("tag", {"labels": ["O", "B-PER"], "every_step": True}, "`cloze_tag.*`"),
    ],
)
def test_heads_without_a_class_open_as_their_encoder(runs, tmp_path, head, options, words):
    made = model().with_head(head, generator=torch.Generator().manual_seed(3), **options).eval()
    _, (top,) = unpacked(runs, finished(runs, made), tmp_path / "zip")
    auto, theirs, _, info = opened(tmp_path / "zip" / top)
    assert auto == "AutoModel"
    assert all(key.startswith("cloze_tag.") for key in info.get("unexpected_keys", ()))
    assert_same_states(made, theirs)
    assert words in (tmp_path / "zip" / top / "README.md").read_text()


TINY = {"layers": 2, "width": 32, "heads": 2, "inner": 64}
LINES = "the cat sees the dog .\nthe dog hears a bird .\na bird likes the cat .\n\n"


@pytest.mark.usefixtures("in_process")
def test_runs_that_were_really_trained(runs, tmp_path):
    """A detector with its generator, then a fine-tuning that begins with it."""
    text = "".join(LINES.replace("dog .", f"dog {number} .") for number in range(20))
    sent = runs.inbox.save("cats.txt", text.encode())
    config = {
        "name": "detector",
        "model": {"size": "electra-small", "overrides": TINY | {"embedding_width": 32}},
        "generator": {"width": 16, "heads": 2, "inner": 32},
        "tokenizer": {"vocabulary": 120},
        "data": {"texts": [], "held_out": 0.2, "max_length": 16, "duplicates": 1},
        "steps": 6,
        "batch_size": 8,
        "report_every": 2,
        "threads": 1,
    }
    run = runs.create(config, texts=[sent.id])
    assert train(runs.folder(run).config_path, lambda line: None) == "finished"
    _, tops = unpacked(runs, run, tmp_path / "zip")
    assert tops == ["detector", "generator"]
    for top, name in zip(tops, ("model", "generator"), strict=True):
        ours = cm.load(runs.folder(run).path / name)
        _, theirs, words, info = opened(tmp_path / "zip" / top)
        assert info == {}
        assert_same_pieces(ours, words)
        assert_same_states(ours, theirs)
        card = (tmp_path / "zip" / top / "README.md").read_text()
        assert "at step 6:" in card
        assert ("| masked token loss |" in card) == (name == "generator")
    rows = ["text,label", *(f"the {w} sees it {n},{w}" for w in ("cat", "dog") for n in range(12))]
    labelled = runs.inbox.save_labelled("pets.csv", "\n".join(rows).encode())
    task = {"model": {"checkpoint": f"run/{run}"}, "task": {}, "epochs": 1, "threads": 1}
    tuned = runs.create(task | {"name": "pets"}, texts=[labelled["id"]])
    assert train(runs.folder(tuned).config_path, lambda line: None) == "finished"
    _, (top,) = unpacked(runs, tuned, tmp_path / "tuned")
    auto, theirs, words, info = opened(tmp_path / "tuned" / top)
    assert (auto, info) == ("AutoModelForSequenceClassification", {})
    ours = cm.load(runs.folder(tuned).path / "model")
    values = words(TEXT, return_tensors="pt")
    with torch.no_grad():
        expected = theirs(**values).logits
        found = ours.heads["classify"](ours.encoder(ours.batch([TEXT])).hidden)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    card = (tmp_path / "tuned" / top / "README.md").read_text()
    for wanted in ("Labels: cat, dog.", "always the commonest label", "rows to learn from"):
        assert wanted in card
    assert "sees it" not in card
