import lzma
from pathlib import Path

import pytest

from core_models.data import documents
from core_models.errors import InputError

TEXT = "One.\nTwo.\n\n\n  Three.  \n\nFour.\n"


def test_documents_are_parted_by_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    found = list(documents.read([tmp_path / "a.txt"]))
    assert found == [["One.", "Two."], ["Three."], ["Four."]]


def test_compressed_files_and_folders(tmp_path: Path) -> None:
    with lzma.open(tmp_path / "b.txt.xz", "wt", encoding="utf-8") as file:
        file.write("第一句。\n\nLast.")
    (tmp_path / "a.txt").write_text("\ufeffOne.\nTwo.")  # an end of file ends the document
    (tmp_path / "notes.md").write_text("# not a text")
    found = list(documents.read([tmp_path]))
    assert found == [["One.", "Two."], ["第一句。"], ["Last."]]


def test_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"One.\r\nTwo.\r\n\r\nThree.\r\n")
    assert list(documents.read([tmp_path / "a.txt"])) == [["One.", "Two."], ["Three."]]


def test_paragraphs_are_split_on_request(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One is here. Two is too.\nThree.\n\nFour.")
    found = list(documents.read([tmp_path / "a.txt"], paragraphs=True))
    assert found == [["One is here.", "Two is too.", "Three."], ["Four."]]


def test_unusable_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        list(documents.read([tmp_path / "a.txt"]))
    with pytest.raises(InputError, match=r"holds no \.txt"):
        list(documents.read([tmp_path]))
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(InputError, match=r"is no \.txt"):
        list(documents.read([tmp_path / "a.csv"]))
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        list(documents.read([tmp_path / "a.txt"]))
    for name, content in (
        ("b.txt.xz", b"plain"),
        ("c.txt.xz", lzma.compress(b"cut off" * 99)[:40]),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            list(documents.read([tmp_path / name]))


@pytest.mark.parametrize(
    ("paragraph", "count"),
    [
        ("It rains. We stay. Why not? Yes!", 4),
        ("Mr. Hill met Dr. Ross at 5 p.m. on St. Mary's Road. He left.", 2),
        ("J. R. Smith wrote it, e.g. The Sea. I did not. It was I. Then he came.", 4),
        ("It cost 3.14 dollars in the U.S. Congress.", 1),
        ('"Stop!" he said. "Why?" she asked. "Go." They went.', 4),
        ("He waited... and left. Then (it was late.) He slept.", 3),
        ("See www.example.org for more. version 2.0 is out", 1),
        ("No end", 1),
        ("我来了。你呢？“好！”他说。", 4),
        ("天气很好！我们去 Paris 吧。OK. 好的", 4),
        ("他说……然后走了。", 2),
        ("J.R.R. Tolkien met the E.U. Council. He left.", 2),
        ("See Fig. 3 and No. 5 etc. It costs 2.50. Version 2.0 is here.", 3),
        ("“好。”，他说。【完。】（对！）《书。》，然后……", 4),
        ("他问：“去吗？”；她说：“不去。”价格是3.14元。", 2),
        ("好!她说. 不好?", 3),
        ("   ", 0),
        ("No. I will not. See no. 7 and nos. 8 to 9. No. 5 left.", 4),
        ("Élan vital. Étienne came. Über allem. «Oui.» Öfter.", 5),
        ("¿Qué? ¡Sí! It was $3. $4 is more. £5. €6.", 6),
        ("Она пришла. Он ушёл.", 2),
    ],
)
def test_sentences_are_split(paragraph: str, count: int) -> None:
    found = documents.split_sentences(paragraph)
    assert len(found) == count, found
    assert "".join("".join(found).split()) == "".join(paragraph.split())


def test_primer_lines_stay_whole(sentences: list[str]) -> None:
    split = [line for line in sentences if len(documents.split_sentences(line)) > 1]
    # What remains is direct speech of several sentences, which the Primer keeps on one line.
    assert len(split) / len(sentences) < 0.08


def test_the_primer_has_the_documents_its_readme_says(english: list[Path]) -> None:
    found = list(documents.read(english))
    assert (len(found), sum(map(len, found))) == (610, 5808)


def test_fingerprints_follow_the_content(tmp_path: Path) -> None:
    for name, content in (("a", "x\n"), ("b", "x\n"), ("c", "y\n")):
        (tmp_path / f"{name}.txt").write_text(content)
    a, b, c = (documents.fingerprint([tmp_path / f"{name}.txt"]) for name in "abc")
    assert a == b != c
    assert documents.fingerprint([tmp_path / "a.txt"], paragraphs=True) != a


def test_held_out_documents() -> None:
    training, held = documents.split_held_out(100, 0.1, seed=1)
    assert sorted([*training, *held]) == list(range(100))
    assert len(held) == 10
    assert (training, held) == documents.split_held_out(100, 0.1, seed=1)
    assert held != documents.split_held_out(100, 0.1, seed=2)[1]
    assert documents.split_held_out(10, 0.0, seed=1) == (list(range(10)), [])
    assert len(documents.split_held_out(10, 0.01, seed=1)[1]) == 2  # pairs need two documents
    with pytest.raises(InputError, match="Too few documents: 3"):
        documents.split_held_out(3, 0.5, seed=1)
    with pytest.raises(InputError, match="between 0 and"):
        documents.split_held_out(30, 0.9, seed=1)


def test_equal_documents_are_never_on_both_sides() -> None:
    texts = [f"text {n % 60}" for n in range(100)]  # 40 occur twice, 20 once
    for share in (0.1, 0.3, 0.5):
        for seed in range(5):
            training, held = documents.split_held_out(100, share, seed, texts)
            assert sorted([*training, *held]) == list(range(100))
            assert not {texts[i] for i in training} & {texts[i] for i in held}
            assert 0 <= len(held) - 100 * share <= 1
            if share == 0.1:  # single ones first
                assert all(40 <= i < 60 for i in held)
    alone = [f"text {n}" for n in range(100)]
    assert documents.split_held_out(100, 0.1, 3, alone) == documents.split_held_out(100, 0.1, 3)
    mostly = ["stub"] * 96 + alone[:4]
    assert documents.split_held_out(100, 0.5, 1, mostly)[1] == [96, 97, 98, 99]
    assert documents.split_held_out(5, 0.0, 1, ["same"] * 5) == ([0, 1, 2, 3, 4], [])
    with pytest.raises(InputError, match="5 documents are repeats of 1"):
        documents.split_held_out(5, 0.2, 1, ["same"] * 5)


@pytest.mark.parametrize(
    ("paragraph", "count"),
    [
        ("Smith J. " * 40_000, 1),
        ("." * 200_000, 1),
        ("!" * 100_000 + '"' * 100_000, 1),
        ("a." * 100_000 + "1. B", 2),
        ("\u3002" * 100_000 + "\uff0c", 1),
    ],
)
def test_odd_paragraphs_take_no_longer_than_others(paragraph: str, count: int) -> None:
    """Minutes if the time grew with the square of the length; here it is a fraction of a second."""
    assert len(documents.split_sentences(paragraph)) == count
