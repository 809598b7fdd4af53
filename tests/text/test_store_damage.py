"""Token stores that were cut off, lost a file or are built by several threads at once."""

import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from core_models import InputError
from core_models.data import Corpus, Example, TokenStore, build_store
from core_models.tokenizer import Tokenizer

SENTENCES = ["The cat sat on the mat.", "A dog ran over the hill.", "Birds sing in the old tree."]


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return Tokenizer.train(SENTENCES * 3, vocabulary=120)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "a.txt"
    documents = ["\n".join([f"the {'cat ' * n}ran.", *SENTENCES]) for n in range(30)]
    path.write_text("\n\n".join(documents))
    return path


@pytest.fixture(scope="module")
def whole(text: Path, words: Tokenizer) -> TokenStore:
    return build_store(
        text.parent / "store", text, words, format="full_sentences", max_length=40, held_out=0.2
    )


@pytest.mark.parametrize("how", ["half", "gone", "empty", "shorter"])
@pytest.mark.parametrize(
    "name",
    [
        "tokens",
        "starts",
        "sentences",
        "documents",
        "examples-train",
        "further-train",
        "further-offsets-train",
    ],
)
def test_a_damaged_store_is_refused(
    name: str, how: str, whole: TokenStore, words: Tokenizer, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(whole.folder, tmp_path / "copy"))
    path = copy / f"{name}.npy"
    raw = path.read_bytes()
    if how == "half":
        path.write_bytes(raw[: len(raw) // 2])
    elif how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    else:
        array = np.load(path)
        np.save(path, array[: len(array) // 2])
    with pytest.raises(InputError, match=f"copy is damaged: .*{name}.*build it again"):
        TokenStore.open(copy, tokenizer=words)


def test_a_store_without_its_further_runs_is_refused(whole: TokenStore, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(whole.folder, tmp_path / "copy"))
    for path in copy.glob("further-*train.npy"):
        path.unlink()
    with pytest.raises(InputError, match=r"further-train\.npy"):
        TokenStore.open(copy)


def test_metadata_without_a_value_is_refused(whole: TokenStore, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(whole.folder, tmp_path / "copy"))
    metadata = json.loads((copy / "metadata.json").read_text())
    del metadata["longest"], metadata["layout"]
    (copy / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(InputError, match=r"metadata\.json lacks longest, layout"):
        TokenStore.open(copy)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tokens.npy", b"'descr'", b"'des\0r'"),  # numpy reads the header as Python
        ("examples-train.npy", b"}", b"("),
        ("metadata.json", b'"examples": {', b'"examples": 0.5, "others": {'),
        ("metadata.json", b'"sentences": ', b'"sentences": "a", "others": '),
    ],
)
def test_what_only_random_changes_found(
    name: str, old: bytes, new: bytes, whole: TokenStore, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(whole.folder, tmp_path / "copy"))
    raw = (copy / name).read_bytes()
    assert old in raw
    (copy / name).write_bytes(raw.replace(old, new, 1))
    with pytest.raises(InputError, match="copy is damaged"):
        TokenStore.open(copy)


def test_batches_of_no_or_unknown_examples_are_refused(whole: TokenStore) -> None:
    with pytest.raises(InputError, match="one example at least"):
        whole.batch([])
    for index in (-1, len(whole)):
        with pytest.raises(InputError, match=f"this split has 0 to {len(whole) - 1}"):
            whole.batch([0, index])


def test_threads_may_build_one_store(words: Tokenizer, tmp_path: Path) -> None:
    corpus = Corpus.from_ids([[[7, 8, 9], [10, 11]]] * 200)
    examples = [Example(3 * n, 3 * n + 3, 0, 0, -100) for n in range(300)]
    failures: list[BaseException] = []
    started = threading.Barrier(4)

    def work() -> None:
        started.wait()
        try:
            TokenStore.build(tmp_path / "store", corpus, {"train": examples}, words)
        except BaseException as error:  # handed to the main thread
            failures.append(error)

    for _ in range(5):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert len(TokenStore.open(tmp_path / "store", tokenizer=words)) == 300
        assert [path.name for path in tmp_path.iterdir()] == ["store"]
        shutil.rmtree(tmp_path / "store")
