"""What is refused when a folder is opened, each with a sentence that tells what to do."""

import json
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING

import core_models as cm
from core_models.inspection import check_config
from tests.core.foreign_models import TEXT, saved
from tests.core.tiny_models import tokenizer

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    saved("mpnet", tmp_path)
    return tmp_path


def change(folder, name="config.json", **values):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def rewrite(folder, change):
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def refused(folder, words):
    with pytest.raises(cm.InputError, match=words) as caught:
        cm.load(folder)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("kind", ["mpnet", "bert"])
def test_remote_code(kind, folder):
    change(folder, model_type=kind, auto_map={"AutoModelForMaskedLM": "modeling.Mine"})
    (folder / "modeling.py").write_text("raise SystemExit('was run')")
    refused(folder, r"config.json names code of its own \(auto_map\), which is never run")
    with pytest.raises(cm.InputError, match="code of its own"):
        cm.inspect(folder)


def test_remote_code_of_a_tokenizer(folder):
    change(folder, "tokenizer_config.json", auto_map={"AutoTokenizer": ["mine.Mine", None]})
    refused(folder, "tokenizer_config.json names code of its own")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model_type": "bart"}, "bart reads with an encoder and writes with a decoder"),
        ({"model_type": "t5"}, "t5 reads with an encoder and writes with a decoder"),
        ({"model_type": "gpt2"}, "gpt2 is a decoder here: it reads from left to right"),
        ({"model_type": "llama"}, "llama is a decoder here: it reads from left to right"),
        ({"model_type": "mpnet", "is_decoder": True}, "mpnet is a decoder here"),
        ({"model_type": "vit"}, "vit was not made to predict hidden tokens"),
        ({"model_type": "nonsuch"}, "'nonsuch', which neither this program"),
        ({"model_type": "mpnet", "quantization_config": {"bits": 4}}, "quantized weights"),
        ({"model_type": "mpnet", "auto_map": {"AutoModel": "a.B"}}, "code of its own"),
        ({"model_type": "bert", "hidden_size": "wide"}, "hidden_size is 'wide'"),
    ],
)
def test_a_config_is_enough_to_say_no(values, words):
    with pytest.raises(cm.InputError, match=words):
        check_config(values)


@pytest.mark.parametrize("kind", ["mpnet", "esm"])
def test_a_config_that_may_be_opened(kind):
    check_config(CONFIG_MAPPING[kind]().to_dict())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"hidden_size": "wide"}, "cannot read it as mpnet|hidden_size"),
        ({"num_attention_heads": 5}, "no mpnet can be built of it"),
        ({"num_hidden_layers": 9_999}, "num_hidden_layers is 9999; allowed is 1 to 512"),
        ({"hidden_size": 10**7}, "width is 10000000; allowed"),
        ({"vocab_size": 10**9}, "vocabulary is 1000000000; allowed"),
        ({"vocab_size": 10**6}, "describes an encoder of .* parameters; the files hold"),
        ({"num_hidden_layers": 8}, "describes an encoder of .* parameters; the files hold"),
        ({"num_hidden_layers": 2}, "encoder.layer.2.*no place in a model of this config.json"),
        ({"intermediate_size": 16}, "do not fit their config.json|another shape"),
    ],
)
def test_a_config_that_lies(folder, values, words):
    change(folder, **values)
    refused(folder, words)


def test_a_tensor_is_missing(folder):
    rewrite(folder, lambda tensors: tensors.pop("mpnet.encoder.layer.1.intermediate.dense.bias"))
    refused(folder, "parameters; the files hold|lacks tensors of the encoder")


def test_a_tensor_of_the_encoder_is_replaced_by_another(folder):
    def swap(tensors):
        tensors["extra"] = tensors.pop("mpnet.encoder.layer.1.intermediate.dense.weight")

    rewrite(folder, swap)
    refused(
        folder, r"lacks tensors of the encoder \(1\), first .*layer.1.intermediate.dense.weight"
    )


def test_numbers_that_are_none(folder):
    rewrite(folder, lambda tensors: tensors["lm_head.bias"].fill_(float("nan")))
    refused(folder, "'lm_head.bias' holds NaN")


def test_whole_numbers_as_weights(folder):
    name = "mpnet.encoder.layer.0.attention.attn.q.weight"
    rewrite(folder, lambda tensors: tensors.update({name: tensors[name].to(torch.int8)}))
    refused(folder, f"{name}.*holds whole numbers")


def test_a_tensor_that_is_not_used_is_told(folder):
    rewrite(folder, lambda tensors: tensors.update(classifier=torch.ones(2)))
    with pytest.warns(UserWarning, match=r"tensors that this model does not use \(1\): classifier"):
        cm.load(folder)


def test_a_pickle_alone(folder):
    (folder / WEIGHTS).unlink()
    torch.save({"a": torch.ones(1)}, folder / "pytorch_model.bin")
    refused(folder, "pickle file, which can run code and is refused")


def lie(folder, length, header):
    text = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", length or len(text)) + text + b"\0" * 64)


def test_a_header_that_claims_ten_gigabytes(folder):
    shape = [50_000, 50_000]
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 10**10]}
    lie(folder, None, {"mpnet.embeddings.word_embeddings.weight": entry})
    refused(folder, "cut off or not a safetensors file")
    with pytest.raises(cm.InputError, match="cut off or not a safetensors file"):
        cm.inspect(folder)


def test_a_header_that_is_ten_gigabytes_long(folder):
    lie(folder, 10**10, {})
    refused(folder, "cut off or not a safetensors file")


def test_a_file_that_was_cut(folder):
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    refused(folder, "cut off or not a safetensors file")


def test_an_index_that_leads_out_of_the_folder(folder):
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../a"}}')
    refused(folder, "outside its folder")


# --- tokenizers -----------------------------------------------------------------------------------


def definition(folder, edit):
    path = folder / "tokenizer.json"
    parsed = json.loads(path.read_text())
    edit(parsed)
    path.write_text(json.dumps(parsed))


def replace_all(parsed, content, times):
    rule = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    parsed["normalizer"] = {"type": "Sequence", "normalizers": [rule] * times}


@pytest.mark.parametrize(("content", "times"), [("a" * 9, 1), ("aa", 40)])
@pytest.mark.parametrize("kind", ["mpnet", "bert"])
def test_a_text_that_would_grow_without_end(kind, content, times, tmp_path):
    if kind == "bert":
        cm.load("bert-mini").save(tmp_path)
    else:
        saved(kind, tmp_path)
        change(tmp_path, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    definition(tmp_path, lambda parsed: replace_all(parsed, content, times))
    refused(tmp_path, "replacements make up to .* characters of one")


def test_a_pattern_that_takes_for_ever(folder):
    rule = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}
    change(folder, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    definition(folder, lambda p: p.update(pre_tokenizer={**rule, "invert": False}))
    refused(folder, "repeats a repetition")


def test_the_usual_patterns_are_none_of_those():
    from core_models.tokenizer.checks import check_rules

    gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    llama = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s*[\r\n]+|\s+"
    for pattern in (gpt2, llama):
        check_rules({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}}})


def test_a_vocabulary_file_that_is_too_large(folder):
    with (folder / "tokenizer.json").open("ab") as file:
        file.truncate(200_000_000)
    refused(folder, "tokenizer.json has 200,000,000 bytes; at most 100,000,000 fit")


def test_a_tokenizer_that_is_damaged(folder):
    (folder / "tokenizer.json").write_text("{")
    change(folder, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    refused(folder, r"cannot read the tokenizer in .*tokenizer=False")
    assert cm.load(folder, tokenizer=False).heads


def test_a_tokenizer_of_a_larger_model(folder):
    cm.load("bert-mini").tokenizer.save(folder)
    refused(folder, "they do not belong together")


def test_a_folder_without_a_tokenizer_takes_ids(folder):
    for path in (*folder.glob("tokenizer*"), *folder.glob("vocab*")):
        path.unlink()
    model = cm.load(folder)
    assert model(cm.Batch(input_ids=torch.tensor([[2, 7, 3]]))).hidden.shape == (1, 3, 16)
    with pytest.raises(cm.InputError, match="opened without a tokenizer"):
        cm.fill(model, TEXT)


def test_a_model_of_ours_without_a_tokenizer_takes_ids(tmp_path):
    cm.load("bert-mini").save(tmp_path)
    for path in (*tmp_path.glob("tokenizer*"), *tmp_path.glob("vocab*")):
        path.unlink()
    model = cm.load(tmp_path)
    assert "masked_token" in model(cm.Batch(input_ids=torch.tensor([[2, 7, 3]]))).logits
    model.save(tmp_path / "again")
    again = cm.load(tmp_path / "again")
    assert again.config == model.config
    with pytest.raises(cm.InputError, match="opened without a tokenizer"):
        again.encode("Fine.")


@pytest.mark.parametrize("name", ["../secret", "a/../b", "owner/../../etc", "/etc/passwd", "a//b"])
def test_an_id_with_a_path_in_it(name):
    with pytest.raises(cm.InputError, match="No model"):
        cm.load(name)


# --- a tokenizer in Python, as ESM has ------------------------------------------------------------

ACIDS = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]


def test_a_protein(tmp_path):
    from transformers import EsmTokenizer

    saved("esm", tmp_path)
    for path in (
        *tmp_path.glob("tokenizer*"),
        *tmp_path.glob("vocab*"),
        *tmp_path.glob("special*"),
    ):
        path.unlink()
    (tmp_path / "vocab.txt").write_text("\n".join(ACIDS))
    theirs = EsmTokenizer(str(tmp_path / "vocab.txt"))
    theirs.save_pretrained(tmp_path)
    assert len(ACIDS) <= tokenizer().vocabulary
    model = cm.load(tmp_path)
    for text in ("MKTAYIAKQR", "MKT<mask>YIA", "MK TA"):
        assert model.encode(text)[0].ids == theirs(text)["input_ids"]
    assert model.encode("MK")[0].pieces == ["<cls>", "M", "K", "<eos>"]
    assert len(cm.fill(model, "MKT<mask>YIA", top_k=3).predictions[0].candidates) == 3
