"""Folders of models that are bombs. Each begins as a tiny BERT of transformers' format."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bombs.kind import GIGABYTE, endless, pipe, sparse

KIND = "model"
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"


def change(folder: Path, **values: Any) -> None:
    """Other values of config.json."""
    path = folder / CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def header(tensors: Mapping[str, Any]) -> bytes:
    """The head of a safetensors file."""
    text = json.dumps(tensors).encode()
    return len(text).to_bytes(8, "little") + text


def tensors_of(folder: Path) -> dict[str, Any]:
    """What the head of the weights says."""
    raw = (folder / WEIGHTS).read_bytes()
    found: dict[str, Any] = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    return found


def billion_layers(folder: Path) -> None:
    change(folder, num_hidden_layers=10**9)


def endless_width(folder: Path) -> None:
    change(folder, hidden_size=2 * 10**12, intermediate_size=10**12)


def million_heads(folder: Path) -> None:
    change(folder, num_attention_heads=10**6, hidden_size=10**6)


def endless_vocabulary(folder: Path) -> None:
    change(folder, vocab_size=10**12, max_position_embeddings=10**12, type_vocab_size=10**12)


def billion_labels(folder: Path) -> None:
    change(folder, num_labels=10**9, architectures=["BertForSequenceClassification"])


def foreign_billion_layers(folder: Path) -> None:
    change(folder, model_type="esm", num_hidden_layers=10**9, hidden_size=10**12)


def foreign_pipe(folder: Path) -> None:
    change(folder, model_type="esm", mask_token_id=4)
    pipe(folder / "added_tokens.json")


def long_type(folder: Path) -> None:
    change(folder, model_type="x" * 10**5, architectures=["y" * 10**5])


def long_value(folder: Path) -> None:
    change(folder, hidden_act="z" * 10**5, cloze_family="w" * 10**5)


def deep_config(folder: Path) -> None:
    deep = "[" * 400_000 + "]" * 400_000
    (folder / CONFIG).write_text('{"model_type": "bert", "x": ' + deep + "}")


def long_number(folder: Path) -> None:
    (folder / CONFIG).write_text('{"model_type": "bert", "hidden_size": ' + "9" * 900_000 + "}")


def sparse_config(folder: Path) -> None:
    sparse(folder / CONFIG, 8 * GIGABYTE, b"{")


def endless_config(folder: Path) -> None:
    endless(folder / CONFIG)


def piped_config(folder: Path) -> None:
    pipe(folder / CONFIG)


def endless_weights(folder: Path) -> None:
    endless(folder / WEIGHTS)


def piped_weights(folder: Path) -> None:
    pipe(folder / WEIGHTS)


def head_of_8_gigabytes(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((8 * GIGABYTE).to_bytes(8, "little") + b"{}")


def sparse_head(folder: Path) -> None:
    size = 8 * GIGABYTE
    sparse(folder / WEIGHTS, size + 8, size.to_bytes(8, "little") + b"{")


def endless_head(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"\xff" * 8 + b"{}")


def shape_without_numbers(folder: Path) -> None:
    entry = {"dtype": "F32", "shape": [2**31, 2**31], "data_offsets": [0, 2**64 - 1]}
    (folder / WEIGHTS).write_bytes(header({"bert.embeddings.word_embeddings.weight": entry}))


def overlapping_tensors(folder: Path) -> None:
    entry = {"dtype": "F32", "shape": [250_000], "data_offsets": [0, 1_000_000]}
    many = {f"t{number}": entry for number in range(20_000)}
    sparse(folder / WEIGHTS, len(header(many)) + 1_000_000, header(many))


def empty_tensors(folder: Path) -> None:
    entry = {"dtype": "F32", "shape": [0, 2**40], "data_offsets": [0, 0]}
    (folder / WEIGHTS).write_bytes(header({f"t{number}": entry for number in range(50_000)}))


def sparse_weights(folder: Path) -> None:
    """64 GB of zeros under a name that the model has."""
    name, rows = "bert.embeddings.word_embeddings.weight", 2 * GIGABYTE
    tensors = tensors_of(folder)
    old = tensors[name]
    size = rows * old["shape"][1] * 4
    head = header({name: {"dtype": "F32", "shape": [rows, old["shape"][1]]} | _at(0, size)})
    sparse(folder / WEIGHTS, len(head) + size, head)


def sparse_spare(folder: Path) -> None:
    """The whole model, and beside it a tensor of 64 GB of zeros that nothing reads."""
    raw, tensors = (folder / WEIGHTS).read_bytes(), tensors_of(folder)
    body = raw[8 + int.from_bytes(raw[:8], "little") :]
    size = 64 * GIGABYTE
    shape = {"dtype": "F32", "shape": [size // 4]}
    head = header(tensors | {"bert.pooler.dense.bias": shape | _at(len(body), len(body) + size)})
    sparse(folder / WEIGHTS, len(head) + len(body) + size, head + body)


def _at(begin: int, end: int) -> dict[str, Any]:
    return {"data_offsets": [begin, end]}


def long_name_of_a_tensor(folder: Path) -> None:
    raw, tensors = (folder / WEIGHTS).read_bytes(), tensors_of(folder)
    body = raw[8 + int.from_bytes(raw[:8], "little") :]
    more = {"dtype": "F32", "shape": [1], "data_offsets": [len(body), len(body) + 4]}
    (folder / WEIGHTS).write_bytes(header(tensors | {"n" * 10**5: more}) + body + b"\0" * 4)


def index_of_many_files(folder: Path) -> None:
    places = {f"t{number}": f"model-{number}.safetensors" for number in range(100_000)}
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))


def index_of_one_file_by_many_names(folder: Path) -> None:
    """400 names for one file of 40 MB: 16 GB to read."""
    raw, tensors = (folder / WEIGHTS).read_bytes(), tensors_of(folder)
    body = raw[8 + int.from_bytes(raw[:8], "little") :]
    size = 40_000_000
    extra = {f"spare.{number}": {"dtype": "F32", "shape": [0]} | _at(0, 0) for number in range(400)}
    big = {"dtype": "F32", "shape": [size // 4]} | _at(len(body), len(body) + size)
    head = header(tensors | extra | {"bert.pooler.dense.bias": big})
    sparse(folder / "file.safetensors", len(head) + len(body) + size, head + body)
    (folder / WEIGHTS).unlink()
    places = dict.fromkeys([*tensors, "bert.pooler.dense.bias"], "file.safetensors")
    places.pop("__metadata__", None)
    for number in range(400):
        (folder / f"model-{number}.safetensors").symlink_to("file.safetensors")
        places[f"spare.{number}"] = f"model-{number}.safetensors"
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))


def index_that_is_deep(folder: Path) -> None:
    (folder / INDEX).write_text('{"weight_map": ' + '{"a":' * 200_000 + "1" + "}" * 200_001)


def endless_shard(folder: Path) -> None:
    endless(folder / "model-00001-of-00001.safetensors")
    places = dict.fromkeys(tensors_of(folder), "model-00001-of-00001.safetensors")
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))


MAKERS = (
    billion_layers,
    endless_width,
    million_heads,
    endless_vocabulary,
    billion_labels,
    foreign_billion_layers,
    foreign_pipe,
    long_type,
    long_value,
    deep_config,
    long_number,
    sparse_config,
    endless_config,
    piped_config,
    endless_weights,
    piped_weights,
    head_of_8_gigabytes,
    sparse_head,
    endless_head,
    shape_without_numbers,
    overlapping_tensors,
    empty_tensors,
    sparse_weights,
    sparse_spare,
    long_name_of_a_tensor,
    index_of_many_files,
    index_of_one_file_by_many_names,
    index_that_is_deep,
    endless_shard,
)
