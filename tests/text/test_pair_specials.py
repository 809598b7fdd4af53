"""Pairs keep to the length also where the template has four special pieces (RoBERTa)."""

import random
from pathlib import Path

import pytest

from core_models import InputError
from core_models.data import PAIRED, Corpus, TokenStore, build_store, examples
from core_models.tokenizer import Template, Tokenizer

CORPUS = Corpus.from_ids(
    [[[n % 50 for n in range(5 + row + 3 * s)] for s in range(6)] for row in range(20)]
)


@pytest.mark.parametrize("name", sorted(PAIRED))
@pytest.mark.parametrize("specials", [3, 4])
def test_two_texts_and_special_pieces_fit(name: str, specials: int) -> None:
    source = random.Random(0)
    made = list(examples(name, CORPUS, max_length=24, generator=source, specials=specials))
    sizes = [b - a + d - c for a, b, c, d, *_ in made]
    assert max(sizes) == 24 - specials
    assert min(min(b - a, d - c) for a, b, c, d, *_ in made) > 0
    with pytest.raises(InputError, match=f"at least {specials + 2}: {specials} special pieces"):
        list(examples(name, CORPUS, max_length=specials + 1, generator=source, specials=specials))


@pytest.mark.parametrize("name", sorted(PAIRED))
def test_stores_of_any_template_keep_to_the_length(name: str, tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    line = "The cat sat on the mat and looked at the number {} for a very long time."
    text.write_text("\n\n".join("\n".join(line.format(n) for _ in range(5)) for n in range(12)))
    for kind in ("byte_bpe", "unigram"):
        for template in (None, Template.trailing):
            tokenizer = Tokenizer.train([text.read_text()], vocabulary=300, kind=kind)
            if template is not None:
                tokenizer = Tokenizer.train(
                    [text.read_text()],
                    vocabulary=300,
                    kind=kind,
                    template=template(tokenizer.specials),
                )
            folder = tmp_path / f"{kind}{template is None}"
            store = build_store(folder, text, tokenizer, format=name, max_length=32)
            assert store.longest == 32
            assert int(store.batch(range(len(store)), 32).lengths.max()) == 32


def test_a_store_can_leave_lone_sentences_out(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("\n\n".join(f"One cat {n}.\nTwo dogs {n}." for n in range(9)) + "\n\nAlone.")
    tokenizer = Tokenizer.train([text.read_text()], vocabulary=100)
    options = {"format": "sentence_order", "max_length": 64, "short_probability": 0.0}
    sizes = {}
    for lone in (True, False):
        store: TokenStore = build_store(
            tmp_path / str(lone),
            text,
            tokenizer,
            random_for_lone=lone,
            held_out=0.0,
            **options,  # type: ignore[arg-type]
        )
        sizes[lone] = len(store)
    assert sizes == {True: 10, False: 9}
